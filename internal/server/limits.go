package server

import "time"

const (
	// maxInbox is how many messages wait for the loop; readers wait beyond.
	maxInbox = 1 << 14
	// maxInboxBytes is the same in bytes of keys and values.
	maxInboxBytes = 64 << 20
	// maxHeld is how many answers wait for the disk; the loop waits beyond.
	maxHeld = 1 << 16
	// maxHeldBytes bounds the bytes of records that aren't durable yet.
	maxHeldBytes = 64 << 20
	// certificateWarning is how long before its end a certificate is warned
	// about, and certificateCheck how often that is looked at.
	certificateWarning = 30 * 24 * time.Hour
	certificateCheck   = time.Hour
	// shutdownGrace bounds how long the metrics listener may take to close.
	shutdownGrace = time.Second
)
