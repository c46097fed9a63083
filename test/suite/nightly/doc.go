// Package nightly has the tests that take too long, or change too much of the
// machine, for every run of the tests: they install packages into a system of
// their own and boot it. `make nightly` runs them; without its build tag the
// package is empty.
package nightly
