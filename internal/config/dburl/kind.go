package dburl

import "slices"

// Kinds are the kinds of database servers that are known.
type Kinds []Kind

// Kind is a kind of database server, with the fields of source.Kind.
type Kind struct {
	Scheme            string
	Aliases           []string
	Example           string
	Harmless, Account []string

	LooseNames, HasDefaults, Fetches bool
}

// Of returns the kind of the database servers whose URLs begin with that scheme.
func (k Kinds) Of(scheme string) (Kind, bool) {
	for _, kind := range k {
		if kind.Scheme == scheme || slices.Contains(kind.Aliases, scheme) {
			return kind, true
		}
	}
	return Kind{}, false
}

// harmless reports whether a parameter holds no secret.
func (k Kind) harmless(name string) bool {
	return slices.Contains(k.Harmless, k.parameter(name))
}

// parameter is the name of a parameter as Harmless has it.
func (k Kind) parameter(name string) string {
	if k.LooseNames {
		return looseName(name)
	}
	return name
}
