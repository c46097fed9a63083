package config

import (
	"strings"

	"github.com/observerd/observerd/internal/config/dburl"
	"github.com/observerd/observerd/internal/config/yamlfile"
)

// resolveURL makes the URL of a section from its url or url-file, whichever was set in
// the higher layer. Setting both in one layer is a mistake.
func (l *loader) resolveURL(path string, parse func(string) (URL, error)) (u URL, ok bool) {
	urlKey, fileKey := join(path, "url"), join(path, "url-file")
	byURL, byFile := l.k.Exists(urlKey), l.k.Exists(fileKey)
	switch {
	case !l.OK(urlKey, fileKey):
		return URL{}, false
	case byURL && byFile && l.LayerOf(urlKey) == l.LayerOf(fileKey):
		l.Reject(fileKey, "url is set as well; remove one of them")
		return URL{}, false
	case byFile && (!byURL || l.LayerOf(fileKey) > l.LayerOf(urlKey)):
		return l.parseURL(fileKey, l.fromFile(fileKey, "URL"), parse)
	case byURL:
		return l.parseURL(urlKey, l.expand(urlKey, l.k.String(urlKey), "url-file"), parse)
	}
	l.Reject(path, "url is missing; write url or url-file")
	return URL{}, false
}

func (l *loader) parseURL(key, text string, parse func(string) (URL, error)) (URL, bool) {
	if !l.OK(key) {
		return URL{}, false
	}
	u, err := parse(text)
	if err != nil {
		l.Reject(key, err.Error())
		return URL{}, false
	}
	return u, true
}

// fromFile reads a URL or a password from its file. The file's name is not
// repeated: it may be the secret itself, in the wrong place.
func (l *loader) fromFile(key, what string) string {
	written := l.k.String(key)
	name := l.fileName(key, written)
	if !l.OK(key) {
		return ""
	}
	if strings.Contains(name, "://") || strings.HasPrefix(name, "sqlite:") {
		l.Reject(key, "this is a URL; write it at url, or write here the name of a file that holds "+holds(what))
		return ""
	}
	text, info, why := yamlfile.Read(name)
	if why != nil {
		refused := forCredential(written, *why)
		refused.Text = key + ": " + refused.Text
		l.RejectFile(key, refused)
		return ""
	}
	content := strings.TrimRight(string(text), "\r\n")
	switch {
	case content == "":
		l.Reject(key, "the file is empty; write the "+what+" into it")
	case what != "URL" || dburl.HoldsPassword(content):
		l.options.warnOfReaders(l.Report, key, name, info)
	}
	return content
}

func holds(what string) string {
	if what == "URL" {
		return "it"
	}
	return "the " + what
}

// sourceURL makes the URL of a source. A file that cannot be read stops that source
// alone: it is a warning, and again reads the file later. The URL is then zero, or
// lacks the password.
func (l *loader) sourceURL(path string) (u URL, again func() (URL, error)) {
	first := l.apart()
	u, _ = first.resolveSource(path)
	l.Warnings = append(l.Warnings, first.Warnings...)
	if !first.OnlyUnreadable() {
		l.Adopt(first.Report)
		return u, nil
	}
	for _, p := range first.Problems {
		p.Text += "; until then the observers of this source fail"
		l.Warnings = append(l.Warnings, p)
	}
	return u, func() (URL, error) {
		now := l.apart()
		if u, ok := now.resolveSource(path); ok {
			return u, nil
		}
		return URL{}, &Error{Problems: now.Problems}
	}
}

// resolveSource makes the URL of a source from its keys and the files that they name.
func (l *loader) resolveSource(path string) (URL, bool) {
	u, ok := l.resolveURL(path, l.options.Kinds.Servers.ParseURL)
	if !ok {
		return URL{}, false
	}
	l.checkFileSystem(l.urlKey(path), u)
	u, known := l.resolvePassword(path, u)
	return u, known && l.OK(l.urlKey(path))
}

// resolvePassword puts the password of its file into the URL of a source.
func (l *loader) resolvePassword(path string, u URL) (URL, bool) {
	key := join(path, "password-file")
	switch {
	case !l.set(key) || !l.OK(key):
		return u, l.OK(key)
	case u.Dialect() == SQLite:
		l.Reject(key, "an SQLite file has no password; remove it")
		return u, false
	}
	password := l.fromFile(key, "password")
	if !l.OK(key) {
		password = "" // It is shown, and hashed, as with one.
	}
	with, err := l.options.Kinds.Servers.WithPassword(u, password)
	if err != nil {
		l.Reject(l.urlKey(path), err.Error())
		return u, false
	}
	return with, l.OK(key)
}
