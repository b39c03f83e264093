import BridgeTypes
import ChatModel
import IRCProtocol
import Rooms

// Service commands for history: history, search and show. Messages are fetched as by CHATHISTORY and SEARCH
// (IRCServer+History); only the format differs.

extension IRCServer {
    // MARK: - Requests

    func readHistory(_ request: ServiceRequest, _ session: IRCSession) {
        guard let room = readableRoom(request.words[0], session) else { return }
        var limit = ServiceReading.usualCount
        if request.words.count > 1 {
            guard let wanted = Int(request.words[1].prefix(9)), wanted > 0 else {
                return say("Usage: \(request.usage)", to: session)
            }
            limit = min(wanted, settings.limits.historyLimit)
        }
        var before: StoredReference?
        if request.words.count > 2 {
            guard request.words.count == 4, IRCCasemapping.ascii.fold(request.words[2]) == "before" else {
                return say("Usage: \(request.usage)", to: session)
            }
            before = .message(request.words[3])
        }
        let query = StoredPageQuery(.newest(after: nil, before: before), limit: limit)
        begin(
            .page(room.id, subcommand: "LATEST", target: room.channel, query),
            as: ServiceReading(kind: .history(limit: limit)), session)
    }

    func readFound(_ request: ServiceRequest, _ session: IRCSession) {
        let parts = request.rest.split(separator: " ", maxSplits: 1)
        var places = rooms.filter { mayReadHistory(of: $0, session) }.map(\.id)
        var words = request.rest
        if let name = parts.first, name.hasPrefix("#") {
            guard let room = readableRoom(String(name), session) else { return }
            places = [room.id]
            words = parts.count > 1 ? String(parts[1]) : ""
        }
        var text = words.drop { $0 == " " }[...]
        // As people quote what belongs together.
        if text.utf8.count > 2, text.first == "\"", text.dropFirst().firstIndex(of: "\"") == text.indices.last {
            text = text.dropFirst().dropLast()
        }
        guard !text.isEmpty else { return say("Usage: \(request.usage)", to: session) }
        guard !places.isEmpty else { return say("You are in no room.", to: session) }
        begin(
            .search(StoredSearch(text: String(text), limit: ServiceReading.maxFound)),
            as: ServiceReading(kind: .search), rooms: places, session)
    }

    func readMessage(_ request: ServiceRequest, _ session: IRCSession) {
        var from = 0
        if request.words.count > 1 {
            guard let wanted = Int(request.words[1].prefix(9)), wanted >= 0 else {
                return say("Usage: \(request.usage)", to: session)
            }
            from = wanted
        }
        let msgid = request.words[0]
        // A room known to have the message is asked first.
        var places = rooms.filter { mayReadHistory(of: $0, session) }
        if let index = places.firstIndex(where: { $0.entry(msgid: msgid) != nil }) {
            places = [places[index]]
        }
        var left = Array(places.map(\.id).reversed())
        guard let first = left.popLast() else { return say("You are in no room.", to: session) }
        begin(
            messageQuestion(msgid, in: first),
            as: ServiceReading(kind: .show(msgid: msgid, from: from), roomsLeft: left), session)
    }

    private func readableRoom(_ name: String, _ session: IRCSession) -> Room? {
        guard let room = serviceRoom(name, session) else { return nil }
        guard mayReadHistory(of: room, session) else {
            say("What was said in \(room.channel) is for those who are there; JOIN it first.", to: session)
            return nil
        }
        return room
    }

    private func begin(
        _ question: HistoryAnswer.Question, as reading: ServiceReading, rooms: [RoomID] = [], _ session: IRCSession
    ) {
        append(HistoryAnswer(session.id, question, as: reading, places: rooms.map { .room($0) }), session)
    }
}
