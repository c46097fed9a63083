// Package observertest has a source and a store in memory. They keep the
// contracts of package observer strictly: the source reuses its buffers and
// has transactions that commit late, the store refuses chunks that are stale,
// fenced or inconsistent.
package observertest
