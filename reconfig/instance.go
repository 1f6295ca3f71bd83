package reconfig

import (
	"strconv"
	"strings"

	"atoll/quorum"
	"atoll/synod"
)

// instancePrefix begins the names of the instances that decide configurations.
const instancePrefix = "recon/"

// Instance returns what decides the configuration of an index.
func Instance(k quorum.ConfigIndex) synod.Instance {
	return synod.Instance(instancePrefix + strconv.FormatUint(uint64(k), 10))
}

// IndexOf returns the index of the configuration that an instance decides, if it
// decides one. The first configuration is decided by nobody.
func IndexOf(i synod.Instance) (quorum.ConfigIndex, bool) {
	digits, ok := strings.CutPrefix(string(i), instancePrefix)
	k, err := strconv.ParseUint(digits, 10, 64)
	return quorum.ConfigIndex(k), ok && err == nil && k > 0 && Instance(quorum.ConfigIndex(k)) == i
}
