package main

import (
	"strings"

	"github.com/observerd/observerd/locks/database"
)

// lockProviders is what each provider of general locks has, in a column each.
func lockProviders() (header []string, rows [][]string) {
	header = []string{""}
	for i, provider := range database.Kinds() {
		header = append(header, provider.Name)
		for j, capability := range provider.List() {
			if i == 0 {
				rows = append(rows, []string{capability.Name})
			}
			rows[j] = append(rows[j], capability.Has)
		}
	}
	return header, rows
}

func lockProvidersText() string {
	var text strings.Builder
	header, rows := lockProviders()
	if err := table(&text, header, rows); err != nil {
		panic(err) // A Builder takes all.
	}
	return strings.TrimSuffix(text.String(), "\n")
}
