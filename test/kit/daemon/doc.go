// Package daemon runs the real program as a process of its own, for tests and
// for what measures it: it builds the binary, writes a node's configuration,
// sends signals, keeps the log and reads the metrics. It knows the program as
// its users do, from outside, and imports nothing of it.
//
// Nothing outlives its owner: a process is killed when the context of [Start]
// ends, and on Linux by the kernel when the process that started it dies.
package daemon
