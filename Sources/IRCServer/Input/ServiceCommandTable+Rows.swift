// The commands of the service, one row each; help, suggestions and documentation are generated from them.

extension ServiceCommandTable {
    package static let standard = ServiceCommandTable([
        ServiceCommand("help", takes: "[<command>]", penalty: 2, "explains a command, or lists them") {
            $0.help($1.words.first, $2)
        },
        ServiceCommand(
            "rooms", penalty: 3, "lists the rooms that you may enter",
            details: ["JOIN enters one. Rooms that a backend has and nobody has opened yet are listed too."]
        ) { $0.listRooms($2) },
        ServiceCommand(
            "status", takes: "[<#room>]", penalty: 3, "tells how the rooms and their links are",
            details: [
                "Of each room: whether it is linked to its backend; if not, since when, why, and when the next try is;"
                    + " and how many messages wait."
            ]
        ) { $0.status($1.words.first, $2) },
        ServiceCommand(
            "who", takes: "[<#room>]", penalty: 2, "lists the people of a room, on both sides",
            details: [
                "With their display names where those are others than their nicks, and whether they are away or type.",
                "Without a room: the one that you are in, if that is one only.",
            ]
        ) { $0.listPeople($1.words.first, $2) },
        ServiceCommand(
            "seen", takes: "<#room>", minParams: 1, penalty: 2, "tells who got and who read what you said",
            details: [
                "The newest message that each reader of yours has read, or got, as far as the backend tells; and how many"
                    + " of your messages wait."
            ]
        ) { $0.seen($1.words[0], $2) },
        ServiceCommand(
            "history", takes: "<#room> [<n> [before <msgid>]]", minParams: 1, penalty: 3, "shows what was said before",
            details: [
                "The last 10 messages, or as many as you say, up to a page of CHATHISTORY. Times are UTC.",
                "Of long messages the first lines; show has the rest.",
                "What the bridge has not kept comes from the backend, where it can be asked.",
            ]
        ) { $0.readHistory($1, $2) },
        ServiceCommand(
            "search", takes: "[<#room>] <words>", minParams: 1, penalty: 4, "looks for what was said before",
            details: [
                "The words as they stand, in any case of letters; in a room, or in all that you are in. The newest \(ServiceReading.maxFound).",
                "Only what the bridge has kept is looked through. Each comes with its msgid, which show and history take.",
            ]
        ) { $0.readFound($1, $2) },
        ServiceCommand(
            "show", takes: "<msgid> [<from>]", minParams: 1, penalty: 3, "shows a message whole",
            details: [
                "Messages that are too long for a room end in \"… more lines\" and the msgid.",
                "At most \(ServiceReading.maxLines) lines at a time; <from> says where to go on, in bytes.",
            ]
        ) { $0.readMessage($1, $2) },
        ServiceCommand(
            "notices", takes: "[on|off]", "says it at once when a user got or read what you said",
            details: [
                "For clients that do not show it themselves; seen tells the same whenever you ask.",
                "At most one notice for each reader in two seconds; the newest message stands for all before it.",
                "Your choice holds for all clients of your account, and persists where the bridge has a store;"
                    + " without an account it holds for this connection.",
            ]
        ) { $0.chooseNotices($1, $2) },
        ServiceCommand(
            "receipts", takes: "[marker|speaking|off|default]", "says what others hear of your reading",
            details: [
                "marker: they hear how far you have read when your client moves your read marker.",
                "speaking: also when you say something; then you have read what came before.",
                "off: they hear nothing. default: as the room or the configuration has it.",
                "Your choice holds for all clients of your account, and persists where the bridge has a store;"
                    + " without an account it holds for this connection.",
            ]
        ) { $0.chooseReceipts($1, $2) },
        ServiceCommand(
            "rejoin", takes: "[on|off]", "says whether you are in your rooms again when you log in",
            details: [
                "on: your account stays in the rooms that you join, until you PART them or are kicked, also while you are away.",
                "off: each client joins by itself; what was remembered is forgotten.",
                "Your choice holds for all clients of your account, and persists where the bridge has a store.",
            ]
        ) { $0.chooseRejoining($1, $2) },
        ServiceCommand(
            "mute", takes: "[<person>]", "hides what a user says from you, or lists whom you muted",
            details: [
                "Nobody else notices. Joins and leaves still show. What they said before is left out too, also of the pages and"
                    + " searches that your client asks for.",
                "Holds for all clients of your account, and persists where the bridge has a store; without an"
                    + " account it holds for this connection.",
            ]
        ) { $0.mute($1.words.first, $2) },
        ServiceCommand("unmute", takes: "<person>", minParams: 1, "shows again what a user says") {
            $0.unmute($1.words[0], $2)
        },
        ServiceCommand("whoami", "tells who you are here, and on the backends") { $0.whoAmI($2) },
        ServiceCommand(
            "login", takes: "[<account> <password>]", penalty: 2, hasPassword: true, "logs in to an account",
            details: [
                "With nothing behind it: to the account of your client's certificate.",
                "SASL or PASS at the start of the connection do the same before anybody sees you.",
            ]
        ) { $0.logIn($1, $2) },
        ServiceCommand(
            "logout", penalty: 2, "leaves your account",
            details: [
                "You stay in your rooms as somebody without an account. Your other clients stay logged in."
            ]
        ) { $0.logOut($2) },
        ServiceCommand(
            "reconnect", takes: "<#room>", minParams: 1, isForAdmins: true, penalty: 3, "opens a room's link anew",
            details: ["A link that waits for its next try is tried now; one that stands is closed and opened again."]
        ) { $0.reconnect($1.words[0], $2) },
    ])
}
