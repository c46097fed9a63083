// Package locktest is the contract of lock.Provider as a suite of tests that
// every provider runs, and a provider in memory for the tests of those who use
// locks.
package locktest
