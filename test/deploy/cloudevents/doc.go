// Package cloudevents holds the events of observerd against the Go SDK of CloudEvents,
// which is no library of the program.
package cloudevents
