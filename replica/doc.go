// Package replica puts the protocols together into one node.
package replica
