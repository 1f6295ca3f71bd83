// Package abd implements the get and put phases of multi-writer atomic registers over a given set of configurations.
package abd
