import BridgeTypes
import ChatModel
import Testing

@testable import BridgeCore
@testable import IRCServer
@testable import Rooms

@Suite("Who is watched, and what is listed")
struct MonitorTests {
    private func target(_ nick: String) -> Monitors.Target { Monitors.Target(nick: nick, folded: nick.lowercased()) }

    @Test("a list takes a nick once, and a hundred at most")
    func bounded() {
        let monitors = Monitors()
        let ann = ClientID(rawValue: 1)
        #expect(monitors.add(target("Remy"), for: ann) == .added)
        #expect(monitors.add(target("REMY"), for: ann) == .known)
        for index in 1..<Monitors.maxTargets { #expect(monitors.add(target("n\(index)"), for: ann) == .added) }
        #expect(monitors.add(target("one-more"), for: ann) == .full)
        #expect(monitors.add(target("remy"), for: ann) == .known)
        #expect(monitors.list(of: ann).count == Monitors.maxTargets)
        #expect(monitors.watchers(of: "remy") == [ann])
    }

    @Test("whoever watches nobody leaves nothing behind")
    func forgets() {
        let monitors = Monitors()
        let (ann, bob) = (ClientID(rawValue: 1), ClientID(rawValue: 2))
        for client in [ann, bob] { _ = monitors.add(target("Remy"), for: client) }
        monitors.remove("remy", for: ann)
        #expect(monitors.watchers(of: "remy") == [bob])
        monitors.remove("linguini", for: bob)
        monitors.forget(bob)
        monitors.forget(bob)
        #expect(monitors.isEmpty && monitors.list(of: ann).isEmpty && monitors.list(of: bob).isEmpty)
    }

    @Test(
        "what a LIST asks for",
        arguments: [
            ("", true), ("#lobby", true), ("#LOBBY", true), ("#kitchen", false), ("#kitchen,#lobby", true),
            ("#lo*", true), ("*by", true), ("!#lo*", false), ("!#ki*", true), ("#lo*,!*by", false), (">2", true),
            (">3", false), ("<4", true), ("<3", false), ("C>9", true), ("C>10", false), ("C<11", true),
            ("C<10", false), ("T>4", true), ("T<5", false), ("T<6", true), ("#lobby,>3", false), ("<", false),
            (">99999999999999999999", false), ("<99999999999999999999", true), ("C<-1", false), (",,,", true),
        ] as [(String, Bool)])
    func lists(_ param: String, _ passes: Bool) {
        let facts = ListFilter.Facts(channel: "#lobby", people: 3, age: 10 * 60_000, topicAge: 5 * 60_000)
        #expect(ListFilter(param).passes(facts) == passes)
    }

    @Test("what is not known meets no condition", arguments: ["C>0", "C<100", "T>0", "T<100"])
    func unknown(_ param: String) {
        #expect(!ListFilter(param).passes(ListFilter.Facts(channel: "#lobby", people: 0)))
    }

    @Test(
        "keys of metadata",
        arguments: [
            ("display-name", true), ("avatar", true), ("a/b.c_d-1", true), ("", false), ("Name", false),
            ("$url", false),
            ("a b", false), ("ä", false), (String(repeating: "k", count: 65), false),
        ] as [(String, Bool)])
    func keys(_ key: String, _ isKey: Bool) { #expect(MetadataSubscriptions.isKey(key) == isKey) }

    @Test("a client subscribes to so many keys and no more")
    func subscriptions() {
        let metadata = MetadataSubscriptions()
        let ann = ClientID(rawValue: 1)
        for index in 0..<MetadataSubscriptions.maxKeys { #expect(metadata.add("k\(index)", for: ann) == true) }
        #expect(!metadata.add("display-name", for: ann) && metadata.add("k0", for: ann))
        #expect(!metadata.wantsNames(ann))
        metadata.remove("k0", for: ann)
        #expect(metadata.add("display-name", for: ann) && metadata.wantsNames(ann))
        metadata.forget(ann)
        #expect(metadata.isEmpty)
    }
}
