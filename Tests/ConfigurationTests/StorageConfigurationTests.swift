import BridgeTestSupport
import BridgeTypes
import Testing

@testable import Configuration

@Suite("The configuration of the storage")
struct StorageConfigurationTests {
    struct Case: Sendable, CustomTestStringConvertible {
        var name: String
        var toml: String
        /// Without the file's name.
        var problem: String

        init(_ name: String, _ toml: String, _ problem: String) {
            self.name = name
            self.toml = toml
            self.problem = problem
        }

        var testDescription: String { name }
    }

    static let refused = [
        Case(
            "a database that is not built yet", "url = \"postgres://chat:hunter2@db/chat\"",
            "3:7: storage in PostgreSQL is not built yet; this version has: sqlite:PATH, memory:"),
        Case(
            "the same by its other name", "url = \"postgresql://db/chat\"",
            "3:7: storage in PostgreSQL is not built yet; this version has: sqlite:PATH, memory:"),
        Case(
            "a scheme that nobody knows, without a word of what may be secret", "url = \"mysql://chat:hunter2@db\"",
            "3:7: storage is written as sqlite:PATH, such as \"sqlite:chatbridge.db\"; this version has: sqlite:PATH, "
                + "memory:"),
        Case(
            "a path alone", "url = \"chatbridge.db\"",
            "3:7: storage is written as sqlite:PATH, such as \"sqlite:chatbridge.db\"; this version has: sqlite:PATH, "
                + "memory:"),
        Case(
            "a URL with an authority", "url = \"sqlite:///var/lib/chat.db\"",
            "3:7: a file is written as sqlite:PATH, without slashes in front: \"sqlite:/var/lib/chat.db\""),
        Case(
            "SQLite's own word for nothing", "url = \"sqlite::memory:\"",
            "3:7: what is not to be kept is written as \"memory:\""),
        Case(
            "no path", "url = \"sqlite:\"",
            "3:7: a file needs a path of one line, such as \"sqlite:chatbridge.db\""),
        Case(
            "a folder", "url = \"sqlite:state/\"",
            "3:7: a file needs a path of one line, such as \"sqlite:chatbridge.db\""),
        Case(
            "a path of two lines", "url = \"sqlite:a\\nb\"",
            "3:7: a file needs a path of one line, such as \"sqlite:chatbridge.db\""),
        Case("a number as address", "url = 5", "3:7: expected \"sqlite:PATH\" or \"memory:\", found an integer"),
        Case(
            "a retention without unit", "retention = 30",
            "3:13: expected a duration such as \"500ms\", \"30s\", \"5m\", \"12h\" or \"7d\", or \"off\", "
                + "found an integer"),
        Case(
            "too few messages", "max_messages_per_room = 10",
            "3:25: expected a whole number from 1000 to 1000000000, or \"off\", found 10"),
        Case(
            "messages in words", "max_messages_per_room = \"many\"",
            "3:25: expected a whole number from 1000 to 1000000000, or \"off\", found \"many\""),
        Case(
            "an unknown sync", "sync = \"fulll\"",
            "3:8: expected \"normal\" or \"full\" or \"off\", found \"fulll\" (did you mean \"full\"?)"),
        Case(
            "an empty batch", "batch = { max_messages = 0 }",
            "3:26: expected a whole number from 1 to 100000, found 0"),
        Case("a batch that takes for ever", "batch = { max_wait = \"1h\" }", "3:22: is longer than 10s"),
        Case(
            "an unknown key of a batch", "batch = { max_wiat = \"1ms\" }",
            "3:11: unknown key \"max_wiat\" (did you mean \"max_wait\"?)"),
        Case(
            "connections that nothing needs yet", "pool = 4",
            "3:1: \"pool\": is for PostgreSQL, which is not built yet; leave it out"),
        Case("an unknown key", "pol = 4", "3:1: unknown key \"pol\""),
        Case(
            "a cluster", "[cluster]\nenabled = true",
            "3:2: \"cluster\": several instances on one storage are not built yet; leave [cluster] out"),
    ]

    @Test("what is wrong is refused at its place", arguments: refused)
    func refusals(_ one: Case) {
        let found = problems(withRoom("[storage]\n" + one.toml))
        #expect(found == ["chatbridge.toml:" + one.problem])
        #expect(!found.joined().contains("hunter2"))
    }

    @Test("variables are refused by their names")
    func refusedVariables() {
        #expect(
            problems(
                withRoom(""),
                variables: [
                    "CHATBRIDGE__CLUSTER__ENABLED": "true", "CHATBRIDGE__STORAGE__POOL": "4",
                    "CHATBRIDGE__STORAGE__SYNC": "never",
                ]
            ).sorted() == [
                "CHATBRIDGE__CLUSTER__ENABLED: several instances on one storage are not built yet; "
                    + "leave [cluster] out",
                "CHATBRIDGE__STORAGE__POOL: is for PostgreSQL, which is not built yet; leave it out",
                "CHATBRIDGE__STORAGE__SYNC: expected \"normal\" or \"full\" or \"off\", found \"never\"",
            ])
    }

    @Test(
        "places are read and printed alike",
        arguments: [
            ("memory:", StoragePlace.memory), ("sqlite:chatbridge.db", .sqlite(path: "chatbridge.db")),
            ("sqlite:/var/lib/chat/a b.db", .sqlite(path: "/var/lib/chat/a b.db")),
            ("sqlite:../chat.db", .sqlite(path: "../chat.db")),
        ])
    func places(text: String, place: StoragePlace) throws {
        #expect(try StoragePlace(parsing: text) == place)
        #expect(place.description == text)
    }

    @Test("everything that is written counts, and survives being printed")
    func roundTrip() throws {
        let loaded = try load(
            withRoom(
                """
                [storage]
                url = "sqlite:/tmp/x.db"
                retention = "off"
                max_messages_per_room = "off"
                sync = "full"
                batch = { max_messages = 7, max_wait = "5ms" }
                """))
        var expected = StorageConfiguration()
        expected.place = .sqlite(path: "/tmp/x.db")
        expected.retention = nil
        expected.maxMessagesPerRoom = nil
        expected.sync = .full
        expected.batch = StorageBatchConfiguration(maxMessages: 7, maxWait: .milliseconds(5))
        #expect(loaded.storage == expected)
        #expect(try load(ConfigurationPrinter.text(loaded)).storage == loaded.storage)
        #expect(try load(withRoom("[storage]\nmax_messages_per_room = 0")).storage.maxMessagesPerRoom == nil)
        #expect(try load(withRoom("[storage]\nmax_messages_per_room = 5000")).storage.maxMessagesPerRoom == 5000)
        #expect(
            try load(withRoom(""), variables: ["CHATBRIDGE__STORAGE__MAX_MESSAGES_PER_ROOM": "2000"]).storage
                .maxMessagesPerRoom == 2000)
    }

    @Test("a request brings a place of its own unless somebody says so")
    func requested() throws {
        let request = ConfigurationRequest(needsRooms: false, storage: .memory)
        #expect(try load(nil, request: request).storage.place == .memory)
        #expect(
            try load("[storage]\nurl = \"sqlite:demo.db\"", request: request).storage.place == .sqlite(path: "demo.db"))
        #expect(try load(withRoom("")).storage.place == .sqlite(path: "chatbridge.db"))
    }

    @Test("what a client that returns gets has bounds")
    func backlog() throws {
        #expect(try load(withRoom("[limits]\nbacklog = 7")).limits.backlog == 7)
        #expect(
            problems(withRoom("[limits]\nbacklog = -1"))
                == ["chatbridge.toml:3:11: expected a whole number from 0 to 100000, found -1"])
    }
}
