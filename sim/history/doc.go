// Package history records what clients saw of registers and decides whether it
// is linearizable.
package history
