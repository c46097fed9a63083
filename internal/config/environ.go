package config

import (
	"fmt"
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
		key, ok := variables[name]
		if !ok {
			l.unknownVariable(name, variables)
			return "", nil
		}
		l.SetOrigin(key, yamlfile.Origin{Layer: yamlfile.FromEnvironment, Name: name})
		return key, value
	}
	_ = l.k.Load(env.Provider(".", env.Opt{
		Prefix:        EnvPrefix,
		TransformFunc: transform,
		EnvironFunc:   func() []string { return l.options.Environ },
	}), nil)
}

func (l *loader) unknownVariable(name string, known map[string]string) {
	if kubernetesVariable.MatchString(name) || failpoint.Knows(name) {
		return
	}
	o := yamlfile.Origin{Layer: yamlfile.FromEnvironment, Name: name}
	if inList(name, EnvPrefix+"OBSERVERS", EnvPrefix+"SINKS") {
		l.RejectAt(o, "", "observers and sinks are lists; set them in the file")
		return
	}
	instead := "remove it, or see the keys in docs/configuration.md"
	if near := nearest.Name(name, slices.Sorted(maps.Keys(known))); near != "" {
		instead = "use " + near
	}
	l.RejectAt(o, "", "this variable sets no key; "+instead)
}

func inList(name string, lists ...string) bool {
	return slices.ContainsFunc(lists, func(list string) bool { return strings.HasPrefix(name, list) })
}

// overrides merges the flags over all other layers.
func (l *loader) overrides() {
	known := l.names.leaves()
	values := make(map[string]any)
	for key, value := range l.options.Overrides {
		o := yamlfile.Origin{Layer: yamlfile.FromFlag, Name: l.flagName(key)}
		switch {
		case slices.Contains(known, key):
			l.SetOrigin(key, o)
			values[key] = fmt.Sprint(value)
		case inList(key, "observers", "sinks"):
			l.RejectAt(o, "", "observers and sinks are lists; set them in the file")
		default:
			instead := "see docs/configuration.md"
			if near := nearest.Name(key, slices.Sorted(slices.Values(known))); near != "" {
				instead = "use " + near
			}
			l.RejectAt(o, "", "there is no such key; "+instead)
		}
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
