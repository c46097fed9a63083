// Package promtest finds the programs of Prometheus, and installs them where
// there are none. Its tests are those of what ships for Prometheus and Grafana:
// the metrics and labels in rules and dashboards are looked up on a running node,
// and the unit tests of the rules run.
package promtest
