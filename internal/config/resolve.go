package config

import (
	"regexp"
	"strings"
)

// resolveURL makes the URL of a section from its url or url-file: the one that
// was set in the higher layer. Setting both in one is a mistake.
func (l *loader) resolveURL(path string) (u URL, ok bool) {
	urlKey, fileKey := join(path, "url"), join(path, "url-file")
	byURL, byFile := l.k.Exists(urlKey), l.k.Exists(fileKey)
	switch {
	case !l.ok(urlKey, fileKey):
		return URL{}, false
	case byURL && byFile && l.layerOf(urlKey) == l.layerOf(fileKey):
		l.reject(fileKey, "url is set as well; remove one of them")
		return URL{}, false
	case byFile && (!byURL || l.layerOf(fileKey) > l.layerOf(urlKey)):
		return l.parseURL(fileKey, l.urlFromFile(fileKey))
	case byURL:
		return l.parseURL(urlKey, l.expand(urlKey))
	}
	l.reject(path, "url is missing; write url or url-file")
	return URL{}, false
}

func (l *loader) parseURL(key, text string) (URL, bool) {
	if !l.ok(key) {
		return URL{}, false
	}
	u, err := ParseURL(text)
	if err != nil {
		l.reject(key, err.Error())
		return URL{}, false
	}
	return u, true
}

// urlFromFile reads a URL from its file. The file's name is not repeated: it
// may be the URL itself, in the wrong place.
func (l *loader) urlFromFile(key string) string {
	name := l.k.String(key)
	if strings.Contains(name, "://") || strings.HasPrefix(name, "sqlite:") {
		l.reject(key, "this is a URL; write it at url, or write here the name of a file that holds it")
		return ""
	}
	text, why := readLimited(name)
	url := strings.TrimRight(string(text), "\r\n")
	switch {
	case why != "":
		l.reject(key, why)
	case url == "":
		l.reject(key, "the file is empty; write the URL into it")
	}
	return url
}

var (
	reference    = regexp.MustCompile(`\$?\$\{([^}]*)\}?`)
	variableName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)
)

// expand replaces ${NAME} by the variable; $${ is a plain ${.
func (l *loader) expand(key string) string {
	return reference.ReplaceAllStringFunc(l.k.String(key), func(found string) string {
		if strings.HasPrefix(found, "$$") {
			return found[1:]
		}
		name, closed := strings.CutSuffix(strings.TrimPrefix(found, "${"), "}")
		if !closed || !variableName.MatchString(name) {
			l.reject(key, "the name of a variable cannot be read; write ${NAME}, or $${ for a plain ${")
			return ""
		}
		value, ok := l.lookup(name)
		if !ok {
			l.reject(key, "the variable "+name+" is not set; set it in the environment, or write url-file")
		}
		return value
	})
}

func (l *loader) lookup(name string) (string, bool) {
	for _, entry := range l.options.Environ {
		if value, ok := strings.CutPrefix(entry, name+"="); ok {
			return value, true
		}
	}
	return "", false
}
