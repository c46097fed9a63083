// Package testbed is what measurements of whole clusters have in common: a
// PostgreSQL of their own, folders for real observerd processes, and the place
// in a document where figures are written.
package testbed
