// Package testbed starts real observerd processes, each in a folder of its own, for
// stories, measurements and contests of whole clusters. Measurements have a PostgreSQL
// of their own beside it, and the place in a document where figures are written.
package testbed
