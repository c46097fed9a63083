// Package servertest runs throw-away database servers for tests: it finds and
// installs their programs, gives each a folder and a port of its own, and sees
// to it that nothing is left behind. What is particular to one kind of server
// stands in the package of that kind, such as pgtest and mariatest.
//
// # What is left behind
//
// Nothing runs on. The kernel tells a server to quit when the thread that
// started it ends (Pdeathsig), so a panic, a timeout or kill -9 of the tests
// ends it as well. Nothing is written outside of one folder under the temporary
// directory. One that a killed run left there is removed by the next run, which
// knows it by a lock that nobody holds any more.
package servertest
