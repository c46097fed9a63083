// Package kubernetes is tests alone: that deploy/kubernetes fits together, and that a real API
// server accepts it. No pod is run.
package kubernetes
