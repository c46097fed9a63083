// Package contend has the tests in which processes, or clients under faults, contend for the
// locks of a provider other than the database, which the torture tries.
package contend
