package config_test

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/observerd/observerd/internal/config"
	"github.com/observerd/observerd/internal/config/field"
	"github.com/observerd/observerd/internal/config/kind"
	"github.com/observerd/observerd/test/kit/webtest"
)

// hook are settings with every type of field, on three floors.
type hook struct {
	URL         field.URL               `key:"url" required:"true" schemes:"https|http"`
	URLFile     string                  `key:"url-file" unit:"file name"`
	Password    field.Secret            `key:"password"`
	PassFile    string                  `key:"password-file" unit:"file name"`
	Token       field.Secret            `key:"token"`
	Secrets     []signing               `key:"secrets"`
	Keys        []field.Secret          `key:"keys"`
	Headers     map[string]field.Secret `key:"headers"`
	Labels      map[string]string       `key:"labels" oneof:"red|blue" entry:"colour"`
	Files       []string                `key:"files" unit:"file name"`
	Body        field.Template          `key:"body" default:"{{json .}}"`
	Rate        float64                 `key:"rate" default:"0.5" min:"0.1" max:"1e3" unit:"events per second"`
	Concurrency int                     `key:"concurrency" default:"8" min:"1" max:"64" unit:"requests"`
	Timeout     time.Duration           `key:"timeout" default:"10s" min:"1s"`
	Deep        deep                    `key:"deep"`
	Servers     []field.URL             `key:"servers" schemes:"nats"`
	Weight      int                     `key:"weight" min:"2" max:"4" unit:"parts"`
	Named       map[string]named        `key:"named"`
}

// named is an entry of a mapping of sections.
type named struct {
	Secret field.Secret `key:"secret" required:"true"`
	File   string       `key:"secret-file" unit:"file name"`
	TLS    field.TLS    `key:"tls"`
}

type signing struct {
	Secret field.Secret `key:"secret" required:"true"`
	File   string       `key:"secret-file" unit:"file name"`
}

type deep struct {
	TLS  field.TLS `key:"tls"`
	Rate float64   `key:"rate" default:"2.5" unit:"parts"`
	Out  string    `key:"out" unit:"file name" written:"true"`
}

func (*hook) Target() (key, place string)          { return "", "" }
func (*hook) Probe(context.Context) []kind.Finding { return nil }

func (h *hook) Check(r field.Report) {
	if _, err := h.Body.Execute(struct{ Stream string }{}); err != nil {
		r.Reject("body", err.Error())
	}
	if h.Rate > 500 {
		r.Warn("rate", "this is a lot")
	}
}

// hooked loads a sink with these settings, and returns what is reported.
func hooked(t *testing.T, settings string, options ...func(*config.Options)) (*config.Config, string) {
	t.Helper()
	text := strings.Replace(minimal, "  - {id: screen, type: stdout}\n", "  - id: hook\n    type: hook\n"+indent(settings), 1)
	o := config.Options{
		Paths: []string{write(t, text)},
		Kinds: config.Kinds{Sinks: []kind.Kind[kind.Settings]{{Name: "hook", Settings: func() kind.Settings { return new(hook) }}}},
	}
	for _, set := range options {
		set(&o)
	}
	cfg, warnings, err := config.Load(o)
	return cfg, strings.ReplaceAll(strings.TrimSpace(report(cfg, warnings, err)), o.Paths[0], "config.yaml")
}

func indent(text string) string {
	return "    " + strings.ReplaceAll(strings.TrimSpace(text), "\n", "\n    ") + "\n"
}

// filesOf writes files that their owner alone may read, a certificate with its key among
// them.
func filesOf(t *testing.T) string {
	t.Helper()
	folder := t.TempDir()
	webtest.NewAuthority(t).WriteServer(folder, "h.example")
	for name, text := range map[string]string{"secret": canary + "\n", "url": "https://h/" + canary, "empty": "", "noise": "abc"} {
		if err := os.WriteFile(filepath.Join(folder, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return folder
}

func in(folder string) func(*config.Options) {
	return environ("DIR="+folder, "SECRET="+canary, "NO_TEMPLATE={{."+canary, "HOST=h.example")
}

func TestSettingsOfEveryType(t *testing.T) {
	t.Parallel()
	folder := filesOf(t)
	cfg, reported := hooked(t, `
url: "https://u:${SECRET}@${HOST}/hook?t=${SECRET}"
password-file: ${DIR}/secret
token: ${SECRET}
secrets: [{secret-file: "${DIR}/secret"}, {secret: "${SECRET}"}]
keys: ["${SECRET}", b]
headers: {Authorization: "Bearer ${SECRET}", x.y: z}
labels: {a.b: red, c: blue}
files: ["${DIR}/a", b]
body: 'on {{.Stream}} of ${HOST}'
rate: 12.25
deep: {tls: {ca-file: "${DIR}/server.pem", cert-file: "${DIR}/server.pem", key-file: "${DIR}/server.key", server-name: "${HOST}"}, out: "${DIR}/out"}
servers: [nats://a, "nats://${SECRET}@b"]
named: {a: {secret-file: "${DIR}/secret"}, b: {secret: "${SECRET}", tls: {ca-file: "${DIR}/server.pem"}}}
`, in(folder))
	if reported != "" {
		t.Fatal(reported)
	}
	h, ok := cfg.Sinks[0].Settings.(*hook)
	if !ok {
		t.Fatalf("settings %T", cfg.Sinks[0].Settings)
	}
	body, err := h.Body.Execute(struct{ Stream string }{"orders"})
	if err != nil {
		t.Fatal(err)
	}
	got := []string{
		h.URL.Reveal(), h.Password.Reveal(), h.Token.Reveal(), h.Secrets[0].Secret.Reveal(), h.Secrets[1].Secret.Reveal(), h.Keys[0].Reveal(), h.Keys[1].Reveal(),
		h.Headers["Authorization"].Reveal(), h.Headers["x.y"].Reveal(), fmt.Sprint(h.Labels), strings.Join(h.Files, " "), body,
		fmt.Sprint(h.Rate, h.Deep.Rate, h.Concurrency, h.Timeout), h.Deep.TLS.ServerName,
		h.Servers[1].Reveal(), h.Named["a"].Secret.Reveal(), h.Named["b"].Secret.Reveal(), h.Named["b"].TLS.CAFile,
	}
	want := []string{
		"https://u:" + canary + "@h.example/hook?t=" + canary, canary, canary, canary, canary, canary, "b",
		"Bearer " + canary, "z", "map[a.b:red c:blue]", folder + "/a b", "on orders of h.example", "12.25 2.5 8 10s", "h.example",
		"nats://" + canary + "@b", canary, canary, folder + "/server.pem",
	}
	if !slices.Equal(got, want) {
		t.Errorf("got\n%q\nwant\n%q", got, want)
	}
	if files := cfg.Sinks[0].Written(); !maps.Equal(files, map[string]string{"deep.out": folder + "/out"}) {
		t.Errorf("files that are written: %v", files)
	}
	client, err := h.Deep.TLS.Config()
	if err != nil || client.RootCAs == nil || len(client.Certificates) != 1 || client.ServerName != "h.example" || client.MinVersion < tls.VersionTLS12 {
		t.Errorf("TLS: %+v, %v", client, err)
	}
	if h.PassFile != "${DIR}/secret" {
		t.Errorf("the hash would tell folders of credentials apart: %s", h.PassFile)
	}
	asJSON, err := json.Marshal(cfg)
	if err != nil {
		t.Fatal(err)
	}
	printed := fmt.Sprintf("%s %v %+v %#v %v", asJSON, h, h, h, h.URL)
	if strings.Contains(printed, canary) || !strings.Contains(printed, "***") || !strings.Contains(printed, "https://u:xxxxx@h.example/xxxxx?xxxxx") {
		t.Errorf("printed %s", printed)
	}
}

func TestBadSettings(t *testing.T) {
	t.Parallel()
	folder := filesOf(t)
	const url = "url: \"https://h\"\n"
	for name, test := range map[string]struct{ settings, want string }{
		"nothing":                   {"rate: 1", "config.yaml:7:5: url is missing; set it"},
		"an unknown key":            {url + "colour: red", `config.yaml:10:5: unknown key "colour"; use one of id`},
		"an unknown key below":      {url + "deep: {tls: {cert: a}}", `config.yaml:10:18: unknown key "cert"; `},
		"no URL":                    {"url: hunter2", "config.yaml:9:10: this is not a URL; use SCHEME://HOST:PORT"},
		"a URL of something else":   {`url: "ftp://u:hunter2@h"`, "config.yaml:9:10: this URL leads to another kind of server; use https or http://HOST"},
		"a password with a #":       {`url: "https://u:p#hunter2@h"`, "config.yaml:9:10: this is not a URL; "},
		"a fragment":                {`url: "https://h/#hunter2"`, "config.yaml:9:10: a URL has no # here; encode it as %23"},
		"both ways":                 {url + "url-file: ${DIR}/url", "config.yaml:10:15: url is set as well; remove one of them"},
		"both ways in a list":       {url + "secrets: [{secret: a, secret-file: b}]", "config.yaml:10:40: secret is set as well; remove one of them"},
		"no secret in a list":       {url + "secrets: [{}]", "config.yaml:10:15: secret is missing; set it"},
		"an empty secret":           {url + "secrets: [{secret: \"${NONE:-}\"}]", "config.yaml:10:24: secret is empty; set it"},
		"no text for a file":        {url + "secrets: [{secret-file: [a]}]", "config.yaml:10:29: secret-file is one text, number or switch"},
		"no secret in a mapping":    {url + "named: {a: {}}", "config.yaml:10:13: secret is missing; set it"},
		"no file in a mapping":      {url + "named: {a: {secret-file: \"${DIR}/none\"}}", "config.yaml:10:30: sinks[0].named.a.secret-file: the file does not exist; create it"},
		"no authority in a mapping": {url + "named: {a: {secret: b, tls: {ca-file: \"${DIR}/noise\"}}}", "config.yaml:10:43: ca-file has no certificate in PEM"},
		"a missing variable":        {url + "password: ${NONE}", "config.yaml:10:15: the variable NONE is not set; set it in the environment, or use password-file"},
		"a variable without a file": {url + "token: ${NONE}", "config.yaml:10:12: the variable NONE is not set; set it in the environment, or use ${NONE:-default}"},
		"a missing header":          {url + "headers: {a: \"${NONE}\"}", "config.yaml:10:18: the variable NONE is not set"},
		"a missing file":            {url + "password-file: ${DIR}/none", "config.yaml:10:20: sinks[0].password-file: the file does not exist; create it, or name the right file"},
		"an empty file":             {url + "password-file: ${DIR}/empty", "config.yaml:10:20: the file is empty; write the secret into it"},
		"no file name":              {url + "deep: {out: \"\"}", "config.yaml:10:17: out is empty; use the name of a file"},
		"a URL in a file's place":   {url + "deep: {out: \"https://u:hunter2@h\"}", "config.yaml:10:17: this is a URL; use the name of a file"},
		"a file of a missing name":  {url + "deep: {out: \"${NONE}/a\"}", "config.yaml:10:17: the variable NONE is not set; set it in the environment, or use the name itself"},
		"no number":                 {url + "rate: many", `config.yaml:10:11: "many" is not a number of events per second from 0.1 to 1000; use for example 0.5`},
		"no number, no preset":      {url + "weight: hunter", `config.yaml:10:13: "hunter" is not a number of parts from 2 to 4; use for example 2`},
		"no finite number":          {url + "rate: NaN", `config.yaml:10:11: "NaN" is not a number of events per second`},
		"a small number below":      {url + "deep: {rate: -1}", `config.yaml:10:18: "-1" is not a number of parts from 0 to 2147483647; use for example 2.5`},
		"no mapping":                {url + "headers: [a]", "config.yaml:10:14: headers is a section; add names below it, each with one text"},
		"no word of the mapping":    {url + "labels: {a: green}", `config.yaml:10:17: unknown value "green"; use red or blue`},
		"no section":                {url + "deep: {tls: a}", "config.yaml:10:17: tls is a section; set its keys below it"},
		"a template of nothing":     {url + "body: 'a {{.Stream'", "config.yaml:10:11: line 1 of this template: unclosed action; use for example {{.Stream}}"},
		"a template of two lines":   {url + "body: \"a\\n{{nothing .}}\"", `config.yaml:10:11: line 2 of this template: function "nothing" not defined; use`},
		"a template's variable":     {url + "body: ${NO_TEMPLATE}", "config.yaml:10:11: with the values of its variables this is invalid; replace the variables with their values to see why"},
		"a field that is missing":   {url + "body: '{{.Colour}}'", "config.yaml:10:11: line 1 of the template: <.Colour> has no value here"},
		"a certificate alone":       {url + "deep: {tls: {cert-file: \"${DIR}/server.pem\"}}", "config.yaml:10:29: cert-file and key-file belong together; set both, or none"},
		"a key alone":               {url + "deep: {tls: {key-file: \"${DIR}/server.key\"}}", "config.yaml:10:12: cert-file and key-file belong together; set both, or none"},
		"a key in its place":        {url + "deep: {tls: {cert-file: \"${DIR}/server.key\", key-file: \"${DIR}/server.key\"}}", "config.yaml:10:29: cert-file and key-file cannot be used: tls: "},
		"no certificate":            {url + "deep: {tls: {ca-file: \"${DIR}/noise\"}}", "config.yaml:10:27: ca-file has no certificate in PEM"},
		"no file of certificates":   {url + "deep: {tls: {ca-file: \"${DIR}/none\"}}", "config.yaml:10:27: sinks[0].deep.tls.ca-file: the file does not exist; create it"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cfg, reported := hooked(t, test.settings, in(folder))
			if !strings.HasPrefix(reported, test.want) || strings.Contains(reported, "\n") || cfg != nil {
				t.Errorf("reported\n%s\nwant\n%s", reported, test.want)
			}
			for _, secret := range []string{"hunter2", canary} {
				if strings.Contains(reported, secret) {
					t.Errorf("a secret was reported: %s", reported)
				}
			}
		})
	}
}

// TestSettingsThatOthersMayRead has secrets in the file itself, and in others.
func TestSettingsThatOthersMayRead(t *testing.T) {
	t.Parallel()
	folder := filesOf(t)
	everybody := func(o *config.Options) { o.OthersMayRead = func(fs.FileInfo) bool { return true } }
	for name, test := range map[string]struct{ settings, want string }{
		"a URL":     {`url: "https://u:hunter2@h"`, "config.yaml:9:10: sinks[0].url holds a password, and every user of this host may read this file (mode 0600); run chmod 640 config.yaml, or use ${NAME} for it, or url-file"},
		"a secret":  {"url: \"https://h\"\npassword: hunter2", "config.yaml:10:15: sinks[0].password holds a secret, and every user of this host may read this file (mode 0600); run chmod 640 config.yaml, or use ${NAME} for it, or password-file"},
		"no file":   {"url: \"https://h\"\ntoken: a${SECRET}", "config.yaml:10:12: sinks[0].token holds a secret, and every user of this host may read this file (mode 0600); run chmod 640 config.yaml, or use ${NAME} for it"},
		"URLs":      {"url: \"https://h\"\nservers: [nats://a, \"nats://u:hunter2@b\"]", "config.yaml:10:14: sinks[0].servers holds a password"},
		"harmless":  {"url: \"https://h\"\nservers: [nats://a, \"nats://u:${SECRET}@b\"]", ""},
		"in a list": {"url: \"https://h\"\nsecrets: [{secret: hunter2}]", "config.yaml:10:24: sinks[0].secrets[0].secret holds a secret"},
		"texts":     {"url: \"https://h\"\nkeys: [\"${SECRET}\", hunter2]", "config.yaml:10:11: sinks[0].keys holds a secret"},
		"a header":  {"url: \"https://h\"\nheaders: {a: \"${SECRET}\", b: hunter2}", "config.yaml:10:34: sinks[0].headers.b holds a secret"},
		"files": {"url: \"https://h\"\npassword-file: ${DIR}/secret\ndeep: {tls: {ca-file: \"${DIR}/server.pem\", cert-file: \"${DIR}/server.pem\", key-file: \"${DIR}/server.key\"}}", `
warning: config.yaml:10:20: the file holds a secret, and every user of this host may read it (mode 0600); run chmod 640 ` + folder + `/secret
warning: config.yaml:11:90: the file holds a secret, and every user of this host may read it (mode 0600); run chmod 640 ` + folder + "/server.key"},
		"variables": {"url: \"https://u:${SECRET}@h\"\npassword: ${SECRET}\nheaders: {a: \"${SECRET}\"}", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, reported := hooked(t, test.settings, in(folder), everybody)
			want := strings.TrimSpace(test.want)
			if !strings.HasPrefix(reported, want) || want == "" && reported != "" || strings.Count(reported, "\n") != strings.Count(want, "\n") {
				t.Errorf("reported\n%s\nwant\n%s", reported, want)
			}
			if strings.Contains(reported, "hunter2") || strings.Contains(reported, canary) {
				t.Errorf("a secret was reported: %s", reported)
			}
		})
	}
}

// TestChangedSettings compares by content, which no hash tells.
func TestChangedSettings(t *testing.T) {
	t.Parallel()
	const text = "url: \"https://u:${SECRET}@h\"\npassword: ${SECRET}\nbody: '{{.Stream}}'\ndeep: {tls: {server-name: a}}\nsecrets: [{secret: first}, {secret: last}]"
	with := func(text, secret string) *config.Config {
		t.Helper()
		cfg, reported := hooked(t, text, environ("SECRET="+secret))
		if reported != "" {
			t.Fatal(reported)
		}
		return cfg
	}
	before := with(text, "a")
	for name, test := range map[string]struct {
		after *config.Config
		want  []string
		hash  bool
	}{
		"nothing":    {with(text, "a"), nil, true},
		"a secret":   {with(text, "b"), []string{"sinks.hook.password", "sinks.hook.url"}, true},
		"a template": {with(strings.Replace(text, "'{{.", "'x {{.", 1), "a"), []string{"sinks.hook.body"}, false},
		"an entry":   {with(strings.Replace(text, "first", "other", 1), "a"), []string{"sinks.hook.secrets[0].secret"}, true},
		"another":    {with(strings.Replace(text, "[{", "[{secret: first}, {", 1), "a"), []string{"sinks.hook.secrets[1].secret", "sinks.hook.secrets[2]"}, false},
		"below":      {with(strings.Replace(text, "server-name: a", "server-name: b", 1), "a"), []string{"sinks.hook.deep.tls.server-name"}, false},
	} {
		if got := config.Changed(before, test.after); !slices.Equal(got, test.want) || (test.after.Hash() == before.Hash()) != test.hash {
			t.Errorf("%s: changed %v, hashes %s and %s", name, got, before.Hash(), test.after.Hash())
		}
	}
}

// TestWarningOfSettings is what Check says, with its place.
func TestWarningOfSettings(t *testing.T) {
	t.Parallel()
	if _, reported := hooked(t, "url: \"https://h\"\nrate: 501"); reported != "warning: config.yaml:10:11: this is a lot" {
		t.Errorf("reported %s", reported)
	}
}
