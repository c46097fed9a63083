package config

import (
	"slices"

	"go.yaml.in/yaml/v3"

	"github.com/observerd/observerd/internal/config/yamlfile"
)

// scanNames finds the names that the file introduces, before the file is held
// against the keys that follow from them. What is not well-formed is passed
// over here; reading the tree reports it.
func scanNames(root *yaml.Node) names {
	var n names
	for _, b := range builtins() {
		n.types = append(n.types, b.name)
	}
	for _, item := range yamlfile.Child(root, "observers").Content {
		if name := yamlfile.Child(item, "type").Value; badName(name) == "" {
			n.types = append(n.types, name)
		}
	}
	sources := yamlfile.Child(root, "sources")
	for i := 0; i+1 < len(sources.Content); i += 2 {
		if name := sources.Content[i].Value; badName(name) == "" {
			n.sources = append(n.sources, name)
		}
	}
	n.types, n.sources = unique(n.types), unique(n.sources)
	return n
}

func unique(names []string) []string {
	slices.Sort(names)
	return slices.Compact(names)
}
