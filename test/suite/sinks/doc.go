// Package sinks tests kinds of sinks with servers in the process, whose libraries the
// program's module does without.
package sinks
