// Package delivery tortures a sink: nodes deliver to a real server while faults strike it,
// the network before it, and the nodes. Then all is healed, and what a consumer that is no
// code of ours has seen is compared with the event log. The faults follow from a seed, which
// is printed: OBSERVERD_TORTURE_SEED=N repeats them, as far as a machine does, and
// OBSERVERD_TORTURE_TIME=10m is how long they strike.
// With OBSERVERD_TORTURE_MUTANT=reads-nothing-back the program lacks a safety step, and the test is
// to fail.
package delivery
