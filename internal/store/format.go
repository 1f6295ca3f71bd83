package store

// Format is the version of the store's folder that this program writes; the
// package doc lists those of the files in it.
const Format = folderFormat
