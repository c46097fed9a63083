package config_test

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/observerd/observerd/internal/config"
	"github.com/observerd/observerd/internal/wiring"
)

// TestTheSectionHTTPAlone has configurations with which no node would start.
func TestTheSectionHTTPAlone(t *testing.T) {
	t.Parallel()
	const socket = "http: {socket: /run/s}\n"
	for name, tc := range map[string]struct {
		file, env string // no file where it is empty
		override  string
		want      config.HTTP
	}{
		"mistakes elsewhere":          {file: socket + "observers: 7\nnonsense: 1\n", want: config.HTTP{Socket: "/run/s"}},
		"credentials of the node":     {file: socket + "database: {url-file: \"${CREDENTIALS_DIRECTORY}/u\"}\n", want: config.HTTP{Socket: "/run/s"}},
		"a source of the file":        {env: "OBSERVERD_SOURCES_W_TIMEZONE=Europe/Berlin", override: "/run/s", want: config.HTTP{Socket: "/run/s"}},
		"a mistake beside the socket": {file: "http: {socket: /run/s, listen: nonsense}\n", want: config.HTTP{Socket: "/run/s"}},
		"a variable in it":            {file: "http: {socket: \"${PLACE}/s\"}\n", env: "PLACE=/run/x", want: config.HTTP{Socket: "/run/x/s"}},
		"the environment":             {file: socket, env: "OBSERVERD_HTTP_SOCKET=/run/e", want: config.HTTP{Socket: "/run/e"}},
		"no socket":                   {file: "http: {listen: \"127.0.0.1:99\"}\nobservers: 7\n", want: config.HTTP{Listen: "127.0.0.1:99"}},
	} {
		o := config.Options{Kinds: wiring.Kinds(), Environ: []string{tc.env}}
		if tc.file != "" {
			o.Path = write(t, tc.file)
		}
		if tc.override != "" {
			o.Overrides = map[string]any{"http.socket": tc.override}
		}
		got, err := config.LoadHTTP(o)
		if err != nil || got.Socket != tc.want.Socket || tc.want.Listen != "" && got.Listen != tc.want.Listen {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
	}
	for text, want := range map[string]string{
		"http: {socket: \"@s\"}\n":                    "config.yaml:1:16: this would be an abstract socket",
		"http: {listen: nonsense}\n":                  "is not an address",
		"http: 7\n":                                   "config.yaml:1:7: ",
		"http: {soket: /run/s}\n":                     "soket",
		"http: [\n":                                   "config.yaml:",
		"http: {socket: \"${NOT_SET_ANYWHERE}/s\"}\n": "NOT_SET_ANYWHERE",
	} {
		path := write(t, text)
		_, err := config.LoadHTTP(config.Options{Kinds: wiring.Kinds(), Path: path})
		if err == nil || !strings.Contains(strings.ReplaceAll(err.Error(), path, "config.yaml"), want) {
			t.Errorf("%s: %v, want %s", text, err, want)
		}
	}
	if _, err := config.LoadHTTP(config.Options{Kinds: wiring.Kinds(), Path: filepath.Join(t.TempDir(), "none.yaml")}); err == nil {
		t.Error("a file that is missing was loaded")
	}
}
