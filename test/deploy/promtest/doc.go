// Package promtest is for tests of what ships for Prometheus and Grafana: it
// reads rules and dashboards as they do, compares the metrics and labels in
// their expressions with what a node really exposes, and shortens rules so that
// a test can wait for them. It finds the programs of Prometheus, and installs
// them where there are none.
package promtest
