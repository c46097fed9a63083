package config

import (
	"fmt"
	"iter"
	"maps"
	"regexp"
	"slices"
	"strings"

	env "github.com/knadh/koanf/providers/env/v2"

	"github.com/observerd/observerd/internal/config/yamlfile"
	"github.com/observerd/observerd/internal/failpoint"
	"github.com/observerd/observerd/internal/nearest"
)

// EnvPrefix begins the name of every variable that sets a key.
const EnvPrefix = "OBSERVERD_"

// In Kubernetes each service of the namespace puts variables into every
// container; a service named observerd, or observerd-metrics, makes these.
var kubernetesVariable = regexp.MustCompile(
	`^OBSERVERD_(\w+_)?(SERVICE_HOST|SERVICE_PORT(_\w+)?|PORT(_\d+_(TCP|UDP|SCTP)(_(PROTO|PORT|ADDR))?)?)$`)

// EnvName returns the variable of a dotted key: OBSERVERD_LOG_LEVEL for
// log.level.
func EnvName(key string) string {
	return EnvPrefix + strings.ToUpper(strings.NewReplacer(".", "_", "-", "_").Replace(key))
}

// environment merges the variables over the file. A variable says neither where
// a "-" nor where a "." was, so it is looked up among the keys that exist.
func (l *loader) environment() {
	variables := make(map[string]string)
	for _, key := range l.names.leaves() {
		variables[EnvName(key)] = key
	}
	transform := func(name, value string) (string, any) {
		o := yamlfile.Origin{Layer: yamlfile.FromEnvironment, Name: name}
		if key, ok := variables[name]; ok {
			l.SetOrigin(key, o)
			return key, value
		}
		if !kubernetesVariable.MatchString(name) && !failpoint.Knows(name) {
			l.unknownKey(o, name, maps.Keys(variables), EnvPrefix+"OBSERVERS", EnvPrefix+"SINKS", "this variable sets no key; ", "remove it, or see the keys in docs/configuration.md")
		}
		return "", nil
	}
	_ = l.k.Load(env.Provider(".", env.Opt{
		Prefix:        EnvPrefix,
		TransformFunc: transform,
		EnvironFunc:   func() []string { return l.options.Environ },
	}), nil)
}

// unknownKey rejects a variable or a flag that is none of those known, with what it is and
// what to do instead unless one is near.
func (l *loader) unknownKey(o yamlfile.Origin, name string, known iter.Seq[string], observers, sinks, what, instead string) {
	if strings.HasPrefix(name, observers) || strings.HasPrefix(name, sinks) {
		what, instead = "observers and sinks are lists; ", "set them in the file"
	} else if near := nearest.Name(name, slices.Sorted(known)); near != "" {
		instead = "use " + near
	}
	l.RejectAt(o, "", what+instead)
}

// overrides merges the flags over all other layers.
func (l *loader) overrides() {
	known := l.names.leaves()
	values := make(map[string]any)
	for key, value := range l.options.Overrides {
		o := yamlfile.Origin{Layer: yamlfile.FromFlag, Name: l.flagName(key)}
		if !slices.Contains(known, key) {
			l.unknownKey(o, key, slices.Values(known), "observers", "sinks", "there is no such key; ", "see docs/configuration.md")
			continue
		}
		l.SetOrigin(key, o)
		values[key] = fmt.Sprint(value)
	}
	l.layer(values, ".")
}

func (l *loader) flagName(key string) string {
	if name, ok := l.options.FlagNames[key]; ok {
		return name
	}
	if !yamlfile.IsPrintable(key) {
		return "--set"
	}
	return "--set " + key
}
