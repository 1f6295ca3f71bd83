// Package scenario runs algorithms in simulated worlds under drawn or scripted
// faults, checks every promise, and shrinks what breaks one.
package scenario
