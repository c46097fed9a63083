// Package contend has the tests in which processes, or clients under faults, contend for the
// locks of a provider other than the database, which the torture tries, and those in which
// consumers that use package guard fail.
package contend
