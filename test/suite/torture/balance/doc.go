// Package balance measures how evenly a cluster of real observerd processes
// shares the types of observers, on a real PostgreSQL: the share of each node,
// how many attempts at locks a poll costs, and how long it takes until the
// shares are even again after a node has come or gone.
//
// What a figure is made of are rows of obs_poll and the nodes' own counters;
// the arithmetic over them is test/kit/fairness.
package balance
