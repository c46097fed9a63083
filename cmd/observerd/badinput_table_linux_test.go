package main

import "os"

// badInput is a start that cannot go well. In its texts {folder} is the folder
// of the test, which has the folders open and closed, the files plain and secret
// and a link to nowhere; {taken} is an address that somebody listens on, and
// {low} a port that needs a right.
type badInput struct {
	database string // the section
	http     string // the section; empty: switched off
	source   string // the URL; empty: that of an SQLite file
	sink     string // the entry; empty: stdout
	// closed are names in the folder, each with the mode that it gets.
	closed map[string]os.FileMode
	// environ is added to the environment.
	environ []string
	// mount are options for a file system in the place of the folder open;
	// empty: none.
	mount string
	// mounted is run in a shell in the folder once that is mounted.
	mounted string
	// forRoot says that root has no trouble with this.
	forRoot bool
	code    int
	// says has the words of the message, on stderr and in the status line of
	// the service manager.
	says []string
}

// secret is what no message may hold.
const secret = "hunter2"

const (
	inOpen   = `{url: "sqlite:{folder}/open/a.db"}`
	inClosed = `{url: "sqlite:{folder}/closed/a.db"}`
	ofSystem = `{url-file: "${CREDENTIALS_DIRECTORY}/database-url"}`
)

func unwritable(where string) []string {
	return []string{where + " cannot be written by this user (", "(it belongs to ", "chown or chmod", "StateDirectory="}
}

// badSecrets are files of secrets that are missing or closed.
var badSecrets = map[string]badInput{
	"a credential is missing": {
		database: ofSystem, environ: []string{"CREDENTIALS_DIRECTORY={folder}/open"}, code: exitConfiguration,
		says: []string{"config.yaml:1:22: database.url-file: ", "the file does not exist", "create it, or name the right file"},
	},
	"no credentials at all": {
		database: ofSystem, code: exitConfiguration,
		says: []string{"config.yaml:1:22: ", "CREDENTIALS_DIRECTORY is not set", "set it in the environment, or use the name itself"},
	},
	"a credential of somebody else": {
		database: `{url-file: "${CREDENTIALS_DIRECTORY}/secret"}`, environ: []string{"CREDENTIALS_DIRECTORY={folder}"},
		closed: map[string]os.FileMode{"secret": 0}, forRoot: true, code: exitDenied,
		says: []string{"config.yaml:1:22: database.url-file: ", "the file may not be read by this user (", "run this as a user who may"},
	},
	"a file is missing": {
		database: `{url-file: "{folder}/none"}`, code: exitConfiguration,
		says: []string{"config.yaml:1:22: database.url-file: ", "the file does not exist", "create it, or name the right file"},
	},
	"a file is closed": {
		database: `{url-file: "{folder}/secret"}`, closed: map[string]os.FileMode{"secret": 0}, forRoot: true, code: exitDenied,
		says: []string{"config.yaml:1:22: database.url-file: ", "may not be read by this user (", "has mode 0000", "change its owner or mode"},
	},
	"a file's folder is closed": {
		database: `{url-file: "{folder}/closed/secret"}`, closed: map[string]os.FileMode{"closed": 0}, forRoot: true, code: exitDenied,
		says: []string{"config.yaml:1:22: database.url-file: ", "may not be read by this user (", "may not enter a folder above it"},
	},
	"the configuration is closed": {
		database: inOpen, closed: map[string]os.FileMode{"config.yaml": 0}, forRoot: true, code: exitDenied,
		says: []string{"config.yaml: the file may not be read by this user (", "has mode 0000", "run this as a user who may"},
	},
}

// exposedSecrets are passwords in a configuration that everybody may read.
var exposedSecrets = map[string]badInput{
	"everybody may read a password": {
		database: `{url: "postgres://app:` + secret + `@127.0.0.1:1/observerd?sslmode=disable"}`, code: exitConfiguration,
		says: []string{
			"config.yaml:1:17: database.url holds a password", "every user of this host may read this file (mode 0644)",
			"run chmod 640 config.yaml", "use ${NAME} for it, or url-file",
		},
	},
	"everybody may read a source's password": {
		database: inOpen, source: "mysql://app:" + secret + "@127.0.0.1:1/shop", code: exitConfiguration,
		says: []string{"config.yaml:3:23: sources.shop.url holds a password", "run chmod 640 config.yaml", "url-file or password-file"},
	},
}

// badPlaces are files that cannot be written.
var badPlaces = map[string]badInput{
	"the state folder is closed": {
		database: inClosed, closed: map[string]os.FileMode{"closed": 0o555}, forRoot: true, code: exitDenied,
		says: unwritable("database.url: {folder}/closed"),
	},
	"the state folder cannot be made": {
		database: `{url: "sqlite:{folder}/closed/one/two/a.db"}`, closed: map[string]os.FileMode{"closed": 0o555}, forRoot: true, code: exitDenied,
		says: unwritable("database.url: {folder}/closed"),
	},
	"the state folder is beyond reach": {
		database: `{url: "sqlite:{folder}/closed/one/two/a.db"}`, closed: map[string]os.FileMode{"closed": 0o600}, forRoot: true, code: exitDenied,
		says: append(unwritable("database.url: {folder}/closed"), "has mode 0600"),
	},
	"the database is closed": {
		database: `{url: "sqlite:{folder}/plain"}`, closed: map[string]os.FileMode{"plain": 0o444}, forRoot: true, code: exitDenied,
		says: unwritable("database.url: {folder}/plain"),
	},
	"a sink's folder is closed": {
		database: inOpen, sink: `{id: lines, type: file, path: "{folder}/closed/a.jsonl"}`,
		closed: map[string]os.FileMode{"closed": 0o555}, forRoot: true, code: exitDenied,
		says: unwritable("sinks[0].path (sink lines): {folder}/closed"),
	},
	"the socket's folder is closed": {
		database: inOpen, http: `{listen: "", socket: "{folder}/closed/http.sock"}`,
		closed: map[string]os.FileMode{"closed": 0o555}, forRoot: true, code: exitDenied,
		says: unwritable("http.socket: {folder}/closed"),
	},
	"a file system that is read-only": {
		database: inOpen, mount: "ro", code: exitDenied,
		says: []string{"database.url: {folder}/open is on a file system that is read-only", "mount it writable", "ReadWritePaths="},
	},
	"a file in the place of a folder": {
		database: `{url: "sqlite:{folder}/plain/one/a.db"}`, code: exitConfiguration,
		says: []string{"database.url: {folder}/plain is a file", "use another place"},
	},
	"a folder in the place of a file": {
		database: `{url: "sqlite:{folder}/open"}`, code: exitConfiguration,
		says: []string{"database.url: {folder}/open is a folder", "use the name of a file in it"},
	},
	"a link to nowhere": {
		database: `{url: "sqlite:{folder}/link/a.db"}`, code: exitConfiguration,
		says: []string{"database.url: {folder}/link is a link to a place that does not exist", "correct the link"},
	},
}

// badAddresses cannot be listened on.
var badAddresses = map[string]badInput{
	"a port in use": {
		database: inOpen, http: `{listen: "{taken}"}`, code: exitConfiguration,
		says: []string{"http.listen: another process listens on {taken}", "ss -ltnp", "another port"},
	},
	"a port that needs a right": {
		database: inOpen, http: `{listen: "127.0.0.1:{low}"}`, forRoot: true, code: exitDenied,
		says: []string{"http.listen: this user may not listen on 127.0.0.1:{low}", "from 1024 up", "CAP_NET_BIND_SERVICE"},
	},
	"an address of another host": {
		database: inOpen, http: `{listen: "192.0.2.1:0", insecure: true}`, code: exitConfiguration,
		says: []string{"http.listen: this host does not have the address of 192.0.2.1:0", "127.0.0.1"},
	},
}
