package transport

// Crash ends the transport as a killed process ends: no peer is told.
func (t *Transport) Crash() error {
	t.mu.RLock()
	sockets := t.mu.sockets
	t.mu.RUnlock()
	for _, s := range sockets {
		_ = s.quic.Close() // Close closes it again, and reports that
	}
	return t.Close()
}

// RetryAbove is how many unfinished connections there are before strangers
// must prove their address.
const RetryAbove = retryAbove

// Unproven is how many connections came in and haven't said hello yet.
func (t *Transport) Unproven() int { return int(t.door.unproven.Load()) }

// Hosts is how many hosts those come from.
func (t *Transport) Hosts() int {
	t.door.mu.Lock()
	defer t.door.mu.Unlock()
	return len(t.door.mu.hosts)
}

// Peers is how many nodes are remembered.
func (t *Transport) Peers() int {
	t.mu.RLock()
	defer t.mu.RUnlock()
	return len(t.mu.peers)
}
