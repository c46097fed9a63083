package config

import (
	"slices"

	"go.yaml.in/yaml/v3"
)

// scanNames finds the names that the file introduces, before the file is held
// against the keys that follow from them. What is not well-formed is passed
// over here; reading the tree reports it.
func scanNames(root *yaml.Node) names {
	var n names
	for _, b := range builtins() {
		n.types = append(n.types, b.name)
	}
	for _, item := range child(root, "observers").Content {
		if name := child(item, "type").Value; badName(name) == "" {
			n.types = append(n.types, name)
		}
	}
	sources := child(root, "sources")
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

// child returns the value of a key of a mapping, or an empty node.
func child(n *yaml.Node, key string) *yaml.Node {
	if n != nil && n.Kind == yaml.MappingNode {
		for i := 0; i+1 < len(n.Content); i += 2 {
			if n.Content[i].Value == key {
				return n.Content[i+1]
			}
		}
	}
	return &yaml.Node{}
}
