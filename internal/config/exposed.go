package config

import (
	"fmt"
	"io/fs"
	"reflect"
	"strings"

	"github.com/observerd/observerd/internal/config/dburl"
	"github.com/observerd/observerd/internal/config/fileowner"
	"github.com/observerd/observerd/internal/config/yamlfile"
)

// checkExposed rejects passwords that are written in a configuration that every
// user of the host may read. It checks a file alone, before the
// environment is merged over it: a password without effect is a password too. The
// keys are not marked as wrong, so that their other mistakes are reported as well.
func (l *loader) checkExposed(in file) {
	if !l.options.OthersMayRead(in.info) {
		return
	}
	for _, f := range l.names.leaves(reflect.TypeFor[Config](), "") {
		inFile := f.typ == reflect.TypeFor[URL]() && l.IsSet(f.key) && l.OriginOf(f.key).File == in.path
		if inFile && dburl.HoldsPassword(withoutVariables(l.k.String(f.key))) {
			l.RejectAt(l.OriginOf(f.key), f.key, whyExposed(in, f.key))
		}
	}
}

func whyExposed(in file, key string) string {
	instead := "write ${NAME} for it, or url-file"
	if strings.HasPrefix(key, "sources.") {
		instead = "write ${NAME} for it, url-file or password-file"
	}
	return fmt.Sprintf("%s holds a password, and every user of this host may read this file (mode %04o); %s, or %s",
		key, in.info.Mode().Perm(), fileowner.Close(in.path, in.info), instead)
}

// warnOfReaders warns of a file that holds a secret and that every user of the
// host may read. It is not a mistake: the mode of a file that is mounted into a
// container often cannot be changed. Container engines themselves put secrets into
// /run/secrets with mode 0444, where it cannot be changed and need not be: there are
// no other users in the container.
func (o Options) warnOfReaders(r *yamlfile.Report, key, name string, info fs.FileInfo) {
	if !o.OthersMayRead(info) || info.Mode().Perm() == 0o444 && strings.HasPrefix(name, "/run/secrets/") {
		return
	}
	r.Warn(key, fmt.Sprintf("the file holds a secret, and every user of this host may read it (mode %04o); %s",
		info.Mode().Perm(), fileowner.Close(name, info)))
}
