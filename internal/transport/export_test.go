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
