package config

import (
	"regexp"
	"strings"

	"github.com/observerd/observerd/internal/config/fileowner"
	"github.com/observerd/observerd/internal/config/yamlfile"
)

// credentials is the variable in which systemd names the folder that holds the
// credentials of a service: what LoadCredential= and its like in the unit name.
const credentials = "CREDENTIALS_DIRECTORY"

var credentialName = regexp.MustCompile(`^[A-Za-z0-9_.-]{1,64}$`)

// credentialOf is the name of the credential that a file key asks for, as it is
// written. is is false where the file is no credential; a name that cannot be
// shown is "NAME".
func credentialOf(written string) (name string, is bool) {
	_, rest, is := strings.Cut(written, "${"+credentials+"}")
	name = strings.TrimPrefix(rest, "/")
	if !credentialName.MatchString(name) {
		name = "NAME"
	}
	return name, is
}

// whyNoCredentials is for a process that was given no credentials at all.
func whyNoCredentials(written string) string {
	name, _ := credentialOf(written)
	return credentials + " is not set: systemd sets it, and has not started this process with credentials; write LoadCredential=" +
		name + ":/FILE into the unit, or by hand set it to the folder that holds " + name
}

// shippedPrefix begins the names of the credentials that the unit of the packages
// makes of the files in a folder.
const shippedPrefix = "secret_"

// howToGive says how systemd is made to hand a credential over.
func howToGive(name string) string {
	if file, shipped := strings.CutPrefix(name, shippedPrefix); shipped && file != "" {
		return "write the file /etc/observerd/credentials/" + file + " (mode 0600, of root) and restart the service"
	}
	return "write LoadCredential=" + name + ":/FILE into the unit and restart it"
}

// forCredential says why the file of a credential cannot be read.
func forCredential(written string, why yamlfile.Unreadable) yamlfile.Unreadable {
	name, is := credentialOf(written)
	switch {
	case !is:
	case why.Missing:
		why.Text = "systemd has not given this process the credential " + name + "; " + howToGive(name)
	case why.Denied:
		why.Text = "the credential " + name + " may not be read by " + fileowner.Me() +
			": systemd gives it to the user of the unit alone; run this as that user or as root"
	}
	return why
}
