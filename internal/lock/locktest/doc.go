// Package locktest has the contract of lock.Provider as a suite of tests that every
// provider passes, and a provider in memory for the tests of packages that use locks.
package locktest
