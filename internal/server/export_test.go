package server

import "atoll/internal/store"

// Disk is what the server needs of a store.
type Disk = disk

// WrapDisk has the server use what wrap makes of its store.
func (c *Config) WrapDisk(wrap func(Disk) Disk) {
	c.openStore = func(cfg store.Config) (disk, error) {
		d, err := openDisk(cfg)
		if err != nil {
			return nil, err
		}
		return wrap(d), nil
	}
}
