// Package yamlfile reads a YAML file for a caller that names each mistake in it by
// line and column. A [Report] notes where each key was set, in the file or elsewhere,
// and what is wrong there. The package knows no keys: the caller walks the nodes with
// [Report.Entries] and its like.
package yamlfile
