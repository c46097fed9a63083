package client

import "github.com/observerd/observerd/internal/observer"

// classes are the codes of each class; those of ranges stand in classOfCode.
var classes = byCode(map[observer.Class][]int{
	// The session or the statement was ended over there, by a person or a limit.
	observer.ClassKilled: {28, 31, 40, 1013, 2392, 2393, 2394, 2395, 7455, 56720, 56735},
	// The session is gone, or the database is not open.
	observer.ClassUnreachable: {
		1012, 1041, 1092, 2396, 2399, 3113, 3114, 3135, 12537, 12547, 12570, 12571, 12572, 12583, 25425,
		1033, 1034, 1035, 1089, 1090, 1109, 1219, 10456, 10458,
		12170, 12526, 12527, 12528, 12535, 12541, 12543, 12560, 12564,
	},
	observer.ClassResource: {
		18, 19, 20, 54, 60, 1000, 1652, 2049, 2391, 4021, 4030, 4031, 12516, 12518, 12519, 12520, 12536, 30006,
	},
	// Most likely a wrong name, address or certificate, but a listener that has
	// just been started says the same.
	observer.ClassSettings: {
		12154, 12505, 12506, 12514, 12521, 12525, 12545, 12599, 12650, 12660, 28040, 28759, 28860, 29024,
	},
	observer.ClassCredentials: {1005, 1017, 1045, 12638, 12641, 28000, 28001, 28009, 28041},
	observer.ClassQuery: {
		1003, 1006, 1008, 1031, 1036, 1446, 1456, 1702, 1747, 1789, 4044, 4063, 6550, 6553, 6575, 16000, 28112, 28113,
		30484, 41900,
	},
	observer.ClassData: {1426, 1427, 1476, 1722, 6502, 6503, 12899, 22835, 29275, 40441},
	// The read has become too old, or what it stands on was changed meanwhile.
	observer.ClassRetry: {
		376, 1410, 1466, 1555, 4020, 4061, 4065, 4068, 8103, 8176, 8177, 8180, 8181, 22924,
	},
	observer.ClassDriver: {600, 3106, 3115, 3120, 3137, 3146, 7445, 7446, 12569},
})

func byCode(codes map[observer.Class][]int) map[int]observer.Class {
	all := map[int]observer.Class{}
	for class, list := range codes {
		for _, code := range list {
			all[code] = class
		}
	}
	return all
}

func classOfCode(code int) observer.Class {
	if class, ok := classes[code]; ok {
		return class
	}
	switch {
	case code >= 900 && code <= 999, code >= 2000 && code <= 2048:
		return observer.ClassQuery // Grammar, names and types of a statement.
	case code >= 1830 && code <= 1899:
		return observer.ClassData // Dates and their formats.
	case code >= 25401 && code <= 25409:
		return observer.ClassUnreachable // A failover is going on.
	}
	return observer.ClassUnknown
}
