import BridgeCore
import ChatModel
import IRCServer
import JSONText
import Transport

// The request of a person to be erased. Without `confirmed` it only says whom it would erase.

extension AdminService {
    func forget(_ call: AdminCall, _ exchange: AdminExchange) {
        let asked = call.text("user") ?? ""
        let found = bridge.people(called: asked, isAccount: call.flag("account"))
        guard let person = found.first else {
            return exchange.fail(
                .notFound,
                "there is no account, nick or backend of \"\(asked)\"; with \"account\" the name of an account counts "
                    + "that is no longer known")
        }
        guard found.count == 1 else {
            return exchange.fail(
                .badRequest, "\"\(asked)\" may be \(found.map(Self.described).joined(separator: " or "))")
        }
        guard call.flag("confirmed") else { return exchange.done(Self.members(person)) }
        guard bridge.isRunning else { return exchange.fail(.unavailable, "the bridge is stopping") }
        // Before: these are the driver's, of an account in the configuration.
        var tokens = 0
        if case .account(let name) = person.name {
            tokens = bridge.ownBackends(of: name).count { driver.removeTokens($0) }
        }
        let stored = bridge.stored(person)
        let (erased, waiting) = perform(exchange) { $0.erase(person, now: $1) }
        let complete = { (more: StoredErasure) in
            var sum = erased
            sum += more
            let counts = [
                ("messages", sum.messages), ("actions", sum.actions), ("conversations", sum.conversations),
                ("records", sum.records), ("tokens", tokens), ("waiting", waiting),
            ]
            exchange.done(Self.members(person) + counts.map { JSONValue.Member($0, .integer(Int64($1))) })
        }
        guard let store else { return complete(StoredErasure()) }
        let question = nextQuestion()
        erasures[question] = { outcome in
            switch outcome {
            case .success(let more): complete(more)
            case .failure(let failure):
                exchange.fail(
                    .unavailable, "the erasure is not complete, and has to be asked for again: \(failure.sentence)")
            }
        }
        store.erase(stored, on: loop) { outcome, transport in
            transport.adminServer?.service.erasures.removeValue(forKey: question)?(outcome)
        }
    }

    private static func described(_ person: ErasablePerson) -> String {
        let nick = person.nick.map { ", now \($0)" } ?? ""
        return switch person.name {
        case .account: "the account \(person.unique)\(nick)"
        case .upstream: "\(person.unique)\(nick)"
        }
    }

    private static func members(_ person: ErasablePerson) -> [JSONValue.Member] {
        var members: [JSONValue.Member] = [
            .init("user", .string(person.unique)), .init("known", .bool(person.isKnown)),
        ]
        switch person.name {
        case .account: members.append(.init("kind", .string("account")))
        case .upstream: members.append(.init("kind", .string("upstream")))
        }
        if let nick = person.nick { members.append(.init("nick", .string(nick))) }
        return members
    }
}
