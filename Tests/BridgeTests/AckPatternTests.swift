import BridgeTestSupport
import ChatModel
import DescribedDialects
import Dialects
import JSONText
import Testing
import Upstream

@testable import BridgeCore
@testable import IRCServer
@testable import Rooms

/// A backend of somebody's own that answers each message with an ack, the id that we gave it beside the one that the
/// backend made, and sends nothing back to its sender. Described, with `echo` left out.
@Suite("Acks of described backends")
struct AckPatternTests {
    private enum Identity: String { case puppet, single }

    private static func definition(_ identity: Identity, hasHistory: Bool, namesOurs: Bool) -> String {
        let sender = identity == .puppet ? #","uid":"{{sender.id}}","nick":"{{sender.name}}""# : ""
        let ref = namesOurs ? #","ref":"/cid""# : ""
        let history =
            hasHistory
            ? #""history":{"get":"/log?limit={limit}","items":"/rows","fields":{\#(row)\#(ref)}},"# : ""
        return #"""
            {"decode":[
               {"when":{"/op":"ack"},"event":"receipt",
                "fields":{"state":{"const":"sent"},"ids":"/id","ref":"/cid","at":"/ts"}},
               {"when":{"/op":"msg"},"event":"message","fields":{\#(row)\#(ref)}},
               {"when":{"/op":"seen"},"event":"receipt",
                "fields":{"state":{"const":"read"},"ids":"/id","by.id":"/uid","by.name":"/nick"}},
               {"when":{"/op":"react"},"event":"reaction",
                "fields":{"target":"/id","emoji":"/emoji","sender.id":"/uid","sender.name":"/nick"}}],
             \#(history)
             "encode":{
               "message":{"op":"send","cid":"{{id}}","txt":"{{text}}"\#(sender)},
               "receipt.read":{"op":"seen","ids":"{{ids}}"},
               "reaction.add":{"op":"react","id":"{{target}}","emoji":"{{emoji}}"},
               "delete":{"op":"del","ids":"{{ids}}"}}}
            """#
    }

    private static let row = #""id":"/id","sender.id":"/uid","sender.name":"/nick","text":"/txt","at":"/ts""#

    /// bob (1) and eve (2) in the room. The history call answers with `log`.
    private final class Stage {
        let session: SessionStage
        /// The elements of the history, oldest first.
        var log: [String] = []

        init(_ identity: Identity = .puppet, hasHistory: Bool = true, namesOurs: Bool = false) throws {
            let json = AckPatternTests.definition(identity, hasHistory: hasHistory, namesOurs: namesOurs)
            session = try SessionStage(CustomDialect(try CustomDefinition(try JSONValue(parsing: json))))
            session.harness.accounts.server = { [unowned self] _ in
                let body = #"{"rows":[\#(self.log.joined(separator: ","))]}"#
                return .success(BackendCallResponse(BackendAnswer(status: 200, body: Array(body.utf8))))
            }
            log = [row("1", "earlier", uid: "u-ann", nick: "ann", at: -60)]
            session.harness.start()
            let caps = "echo-message message-tags standard-replies draft/message-redaction"
            session.enter("bob", 1, caps: caps)
            session.enter("eve", 2, caps: caps)
            _ = (session.heard(1), session.heard(2), session.sent())
        }

        func row(
            _ id: String, _ text: String, uid: String, nick: String, at: Int64 = 1, cid: String? = nil
        ) -> String {
            let cid = cid.map { #","cid":"\#($0)""# } ?? ""
            return #"{"op":"msg","id":"\#(id)","uid":"\#(uid)","nick":"\#(nick)","txt":"\#(text)","#
                + #""ts":\#(SessionStage.base + at * 1000)\#(cid)}"#
        }

        /// As the backend has it that the frame `sent` brought.
        func row(_ id: String, of sent: JSONValue, at: Int64 = 1, cid: String? = nil) -> String {
            let (uid, nick) = (sent["uid"]?.string ?? "u-relay", sent["nick"]?.string ?? "relay")
            return row(id, sent["txt"]?.string ?? "", uid: uid, nick: nick, at: at, cid: cid)
        }

        func say(_ text: String, _ client: UInt64 = 1) -> JSONValue {
            session.harness.send(client, "PRIVMSG #lobby :" + text)
            return session.sent().last ?? .null
        }

        func ack(_ sent: JSONValue, _ id: String) {
            session.backend(#"{"op":"ack","cid":"\#(sent["cid"]?.string ?? "")","id":"\#(id)"}"#)
        }

        func msgid(_ id: String) -> String { session.room.recent.entry(upstreamID: ChatID(id))?.msgid ?? "unknown" }

        /// The link is lost and back, and all that a new link begins with has been said.
        func outage(_ meanwhile: () -> Void = {}) {
            session.loseLink()
            meanwhile()
            session.harness.advance(by: .seconds(5))
            // What a history lacks is looked for once more.
            session.harness.advance(by: CatchUp.patience)
        }

        /// What `client` hears that is said, under the nick that says it; a prefix of the room's account is left out.
        func said(_ client: UInt64) -> [String] {
            session.heard(client).compactMap { line in
                if line.hasPrefix("bridge: ") { return nil }
                return line.prefixMatch(of: #/[^ :]+: /#) == nil ? nil : line
            }
        }
    }

    @Test("the ack confirms and teaches the backend's id: reactions, deletions and receipts find the message")
    func actions() throws {
        for identity in [Identity.puppet, .single] {
            let stage = try Stage(identity)
            let sent = stage.say("hello")
            #expect(stage.said(2) == [], "nothing is confirmed yet")
            stage.ack(sent, "71")
            #expect(stage.said(2) == ["bob: hello"] && stage.said(1) == ["bob: hello"])
            let msgid = stage.msgid("71")

            stage.session.harness.send(2, "@+draft/react=+1;+reply=\(msgid) TAGMSG #lobby")
            #expect(stage.session.sent().map(\.text) == [#"{"op":"react","id":"71","emoji":"+1"}"#])
            _ = (stage.session.heard(1), stage.session.heard(2))
            stage.session.backend(#"{"op":"react","id":"71","emoji":"ok","uid":"u-ann","nick":"ann"}"#)
            #expect(stage.session.heard(2).contains { $0.contains("+draft/react=ok") && $0.contains(msgid) })
            stage.session.backend(#"{"op":"seen","id":"71","uid":"u-ann","nick":"ann"}"#)
            #expect(stage.session.heard(1).contains { $0.contains("+draft/read=\(msgid)") })

            stage.session.harness.send(1, "REDACT #lobby \(msgid)")
            #expect(stage.session.sent().map(\.text) == [#"{"op":"del","ids":["71"]}"#])
            #expect(stage.session.heard(1).allSatisfy { !$0.contains("FAIL") })
            #expect(stage.session.harness.violations == [])
        }
    }

    @Test("after an outage one's own lines in the history are known, and what was missed is shown")
    func ownLinesAfterAnOutage() throws {
        for identity in [Identity.puppet, .single] {
            let stage = try Stage(identity)
            let sent = stage.say("hello")
            stage.ack(sent, "71")
            _ = (stage.said(1), stage.said(2))
            stage.outage {
                stage.log += [stage.row("71", of: sent), stage.row("72", "missed", uid: "u-ann", nick: "ann", at: 3)]
            }
            #expect(stage.said(2) == ["ann: missed"] && stage.said(1) == ["ann: missed"])
            #expect(stage.session.sent() == [])
        }
    }

    @Test("a lost ack doubles nothing: what the history has arrived, what it lacks goes again under the same id")
    func lostAck() throws {
        for identity in [Identity.puppet, .single] {
            for namesOurs in [false, true] {
                let stage = try Stage(identity, namesOurs: namesOurs)
                let (one, two) = (stage.say("one"), stage.say("two"))
                stage.outage {
                    stage.log.append(stage.row("71", of: one, cid: one["cid"]?.string))
                }
                #expect(stage.said(2) == ["bob: one"])
                #expect(stage.session.sent() == [two], "once, and with the id of the first time")
                stage.ack(two, "72")
                #expect(stage.said(2) == ["bob: two"] && stage.said(1) == ["bob: one", "bob: two"])
                #expect(stage.session.room.recent.entry(upstreamID: ChatID("71"))?.excerpt == "one")
                // Nothing of it is news to the next outage.
                stage.outage { stage.log.append(stage.row("72", of: two, cid: two["cid"]?.string)) }
                #expect(stage.said(2) == [] && stage.session.sent() == [] && stage.session.room.lane.outbox.isEmpty)
            }
        }
    }

    @Test("where the history has our ids, the same words of the account's other device settle nothing")
    func otherDevice() throws {
        let stage = try Stage(.single, namesOurs: true)
        stage.ack(stage.say("first"), "70")
        _ = stage.said(2)
        let sent = stage.say("ok")
        stage.outage {
            stage.log.append(stage.row("71", "<bob> ok", uid: "u-relay", nick: "relay", cid: "another-device"))
        }
        #expect(stage.said(2) == ["relay: <bob> ok"])
        #expect(stage.session.sent() == [sent], "it never arrived")
        stage.ack(sent, "72")
        #expect(stage.said(2) == ["bob: ok"])
    }

    @Test("where the history has our ids, they count whatever the backend's clock says")
    func wrongClock() throws {
        let stage = try Stage(namesOurs: true)
        stage.log.append(stage.row("2", "later", uid: "u-ann", nick: "ann", at: -20))
        stage.outage()
        _ = (stage.said(1), stage.said(2))
        let sent = stage.say("hello")
        // Older than the newest that is known, by more than clocks differ.
        stage.outage { stage.log.insert(stage.row("71", of: sent, at: -1200, cid: sent["cid"]?.string), at: 1) }
        #expect(stage.said(2) == ["bob: hello"])
        #expect(stage.session.sent() == [] && stage.session.room.lane.outbox.isEmpty)
    }

    @Test("without a history the author is told that it is not known, and nothing is sent twice")
    func noHistory() throws {
        let stage = try Stage(hasHistory: false)
        _ = stage.say("hello")
        stage.outage()
        stage.session.harness.advance(by: .seconds(16 * 60))
        #expect(stage.session.sent() == [])
        #expect(stage.session.heard(1).contains { $0.contains("It is not known whether this was delivered") })
        #expect(stage.said(2) == [])
    }

    @Test("the same words of somebody else while ours wait for the ack are theirs")
    func sameWords() throws {
        for identity in [Identity.puppet, .single] {
            let stage = try Stage(identity)
            let sent = stage.say("ok")
            stage.session.backend(stage.row("71", "ok", uid: "u-ann", nick: "ann"))
            stage.ack(sent, "72")
            #expect(stage.said(2) == ["ann: ok", "bob: ok"])
            #expect(stage.session.room.recent.entry(upstreamID: ChatID("72"))?.nick == "bob")
        }
    }

    @Test("a receipt that has our id alone leaves the ids ours: what was not confirmed goes again under its own")
    func receiptOfOurID() throws {
        let json = #"""
            {"decode":[{"when":{"/op":"got"},"event":"receipt","fields":{"state":{"const":"sent"},"ids":"/cid"}}],
             "encode":{"message":{"cid":"{{id}}","txt":"{{text}}","nick":"{{sender.name}}"}}}
            """#
        let session = try SessionStage(CustomDialect(try CustomDefinition(try JSONValue(parsing: json))))
        session.harness.start()
        session.enter("bob")
        session.harness.send(1, "PRIVMSG #lobby :hello")
        let sent = session.sent()
        session.loseLink()
        session.harness.advance(by: .seconds(5))
        #expect(session.sent() == sent && sent.count == 1)
        session.backend(#"{"op":"got","cid":"\#(sent[0]["cid"]?.string ?? "")"}"#)
        #expect(session.said() == ["bob: hello"])
    }
}
