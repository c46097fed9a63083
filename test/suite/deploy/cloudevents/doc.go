// Package cloudevents holds the events of observerd against the Go SDK of CloudEvents,
// which is no library of the program, and each night against those of Python and Java.
package cloudevents
