import BridgeTypes
import ChatModel
import IRCProtocol
import Identities
import Rooms

// Replies common to many commands, and tags of lines about IRC users.

extension IRCServer {
    func unknownCommand(_ verb: String, _ session: IRCSession) {
        guard session.person != nil else { return notRegistered(session) }
        reply(.errUnknownCommand, PrintableText.prefix(of: verb, maxBytes: 64), "Unknown command", to: session)
    }

    func notRegistered(_ session: IRCSession) {
        reply(.errNotRegistered, "You have not registered", to: session)
    }

    func needMoreParams(_ verb: String, _ session: IRCSession) {
        reply(.errNeedMoreParams, verb, "Not enough parameters", to: session)
    }

    func tooManyTargets(_ verb: String, _ first: String, _ session: IRCSession) {
        // A NOTICE is never answered: RFC 2812 §3.3.2.
        if verb == MessageVerb.notice.rawValue { return }
        reply(.errTooManyTargets, PrintableText.of(first, maxBytes: 64), "Too many targets", to: session)
    }

    func alreadyRegistered(_ session: IRCSession) {
        reply(.errAlreadyRegistered, "You may not reregister", to: session)
    }

    static let noSuchRoom = "No such room; LIST shows them"

    func noSuchChannel(_ channel: String, _ session: IRCSession) {
        let shown = PrintableText.of(channel, maxBytes: 100)
        reply(.errNoSuchChannel, shown.isEmpty ? "*" : shown, Self.noSuchRoom, to: session)
    }

    func noSuchServer(_ named: String, _ session: IRCSession) {
        let shown = PrintableText.of(named, maxBytes: 64)
        reply(.errNoSuchServer, shown.isEmpty ? "*" : shown, "No such server; this one stands alone", to: session)
    }

    /// Replies with a batch, as part of a labeled response if there is one.
    /// Words, each whole, in as few lines as they fit in behind `:server 302 nick ` and other parameters.
    ///
    /// - Parameter bytes: of what else stands in the line.
    func lines(of words: [String], separator: String = " ", after bytes: Int = 0, to session: IRCSession) -> [String] {
        // Three blanks, four of `:`, the numeric, CR LF.
        let budget = 512 - settings.serverName.utf8.count - session.displayNick.utf8.count - bytes - 12
        var lines: [String] = []
        for word in words {
            if let last = lines.last, last.utf8.count + separator.utf8.count + word.utf8.count <= budget {
                lines[lines.count - 1] = last + separator + word
            } else {
                lines.append(word)
            }
        }
        return lines
    }

    func replyBatch(_ type: String, _ params: [String], _ lines: [IRCMessage], _ session: IRCSession) {
        let reference = nextBatchReference()
        reply(serverLine("BATCH", ["+" + reference, type] + params), session)
        for var line in lines {
            line.setTag("batch", reference)
            reply(line, session)
        }
        reply(serverLine("BATCH", ["-" + reference]), session)
    }

    func refuse(_ verb: MessageVerb, _ answer: IRCMessage, _ session: IRCSession) {
        // A NOTICE is never answered: RFC 2812 §3.3.2.
        if verb != .notice { reply(answer, session) }
    }

    func notInRoom(_ room: Room, _ session: IRCSession) {
        reply(.errNotOnChannel, room.channel, "You're not in that room", to: session)
    }

    func notModerating(_ room: Room, _ session: IRCSession) {
        reply(.errChanOPrivsNeeded, room.channel, "You're not an operator of this room", to: session)
    }

    /// Source: IRCv3 standard-replies.
    func fail(_ command: String, _ code: String, _ context: [String], _ text: String, _ session: IRCSession) {
        reply(serverLine("FAIL", [command, code] + context + [text]), session)
    }

    /// A line with the server as its source.
    func serverLine(_ command: String, _ params: [String] = []) -> IRCMessage {
        IRCMessage(source: settings.serverName, command: command, params: params)
    }

    /// A line about a current action of an IRC user.
    func line(_ command: String, by person: Person, _ params: [String]) -> IRCMessage {
        IRCMessage(tags: stamp(person), source: person.source, command: command, params: params)
    }

    /// Tags of a line about a current action of an IRC user.
    func stamp(_ person: Person) -> [IRCTag] { RoomSpeaker(person).tags(at: context.now.wall) }
}

enum MessageVerb: String {
    case privmsg = "PRIVMSG"
    case notice = "NOTICE"
    case tagmsg = "TAGMSG"
}
