// swift-tools-version: 6.1
import PackageDescription

// Directions: a target imports only what it lists here. The compiler refuses modules that are out of reach, and
// `scripts/check-imports` compares every file's imports with its target's own list (see docs/ARCHITECTURE.md).

let strict: [SwiftSetting] = [
    .enableUpcomingFeature("ExistentialAny"),
    .enableUpcomingFeature("MemberImportVisibility"),
    // The walls between targets cost nothing at run time: measured, 4 % of a message's way.
    .unsafeFlags(["-cross-module-optimization"], .when(configuration: .release)),
    // Owners are objects, and each access of their state would be noted and compared at run time: measured, 5 % of a
    // message's way. Debug builds, which all tests are, go on checking.
    .unsafeFlags(["-enforce-exclusivity=unchecked"], .when(configuration: .release)),
]

// The full version of a release or snapshot, as `scripts/version` prints it; without it BuildInformation's number is the version.
// A function of one C file, so that another version compiles that file alone.
let version: [CSetting] =
    Context.environment["CHATBRIDGE_VERSION"].map { [.define("CHATBRIDGE_VERSION", to: "\"\($0)\"")] } ?? []

func core(_ name: String, _ dependencies: [Target.Dependency]) -> Target {
    .target(name: name, dependencies: dependencies, swiftSettings: strict)
}

// Targets off the path of a message between client and backend: compiled for size, not speed.
let small: [SwiftSetting] = strict + [.unsafeFlags(["-Osize"], .when(configuration: .release))]

func rare(_ name: String, _ dependencies: [Target.Dependency]) -> Target {
    .target(name: name, dependencies: dependencies, swiftSettings: small)
}

func tests(_ name: String, _ dependencies: [Target.Dependency], resources: [Resource] = []) -> Target {
    .testTarget(
        name: name, dependencies: dependencies + ["BridgeTestSupport"], resources: resources, swiftSettings: strict)
}

let package = Package(
    name: "chatbridge",
    products: [
        .executable(name: "chatbridge", targets: ["ChatBridge"]),
        .library(name: "WireBytes", targets: ["WireBytes"]),
        .library(name: "IRCProtocol", targets: ["IRCProtocol"]),
        .library(name: "WSProtocol", targets: ["WSProtocol"]),
        .library(name: "Dialects", targets: ["Dialects"]),
        .library(name: "DescribedDialects", targets: ["DescribedDialects"]),
    ],
    targets: [
        // Shims over the kernel's calls and Debian's libraries; no logic.
        .target(name: "CSystem", cSettings: version),
        .target(name: "CTLS", linkerSettings: [.linkedLibrary("ssl"), .linkedLibrary("crypto")]),
        .target(name: "CZlib", linkerSettings: [.linkedLibrary("z")]),
        .target(name: "CSQLite", linkerSettings: [.linkedLibrary("sqlite3")]),
        // No C++ exceptions: the binary of a release has no tables for them (packaging/binary).
        .target(
            name: "CTOML", cxxSettings: [.define("TOML_HEADER_ONLY", to: "1"), .unsafeFlags(["-fno-exceptions"])]),

        // Protocol cores: bytes and `now` in, values out.
        core("WireBytes", ["CSystem"]),
        core("Digests", ["CTLS", "WireBytes"]),
        core("JSONText", ["CSystem", "WireBytes"]),
        core("HTTPProtocol", ["WireBytes"]),
        core("IRCProtocol", ["WireBytes", "Digests"]),
        core("WSProtocol", ["WireBytes", "Digests", "HTTPProtocol", "CZlib"]),
        core("ChatModel", []),
        core("Dialects", ["ChatModel", "JSONText", "WireBytes"]),
        core("DescribedDialects", ["Dialects", "ChatModel", "JSONText", "WireBytes"]),
        // From recorded frames to a description; it knows what descriptions look like, and nothing of how they are used.
        rare("Learning", ["JSONText", "WireBytes"]),

        // The parts of the bridge, the same way: values in and out. What a part does not list it cannot reach: Upstream
        // knows no rooms and no IRC, Identities no IRC, and beside Upstream nobody knows frames.
        core("BridgeTypes", ["ChatModel", "Digests", "WireBytes"]),
        core("Identities", ["BridgeTypes", "ChatModel", "Digests", "WireBytes"]),
        core("Upstream", ["BridgeTypes", "ChatModel", "Dialects", "HTTPProtocol", "WSProtocol", "WireBytes"]),
        core("Media", ["BridgeTypes", "ChatModel", "Dialects", "Digests", "HTTPProtocol", "WireBytes"]),
        rare("Accounts", ["BridgeTypes", "Identities", "Upstream", "ChatModel", "Digests", "WireBytes"]),
        core(
            "Rooms",
            [
                "BridgeTypes", "Identities", "Media", "Upstream", "ChatModel", "Dialects", "HTTPProtocol", "WireBytes",
                "Digests",
            ]),
        core(
            "IRCServer",
            [
                "Accounts", "BridgeTypes", "Identities", "Media", "Rooms", "Upstream", "ChatModel", "Dialects",
                "IRCProtocol", "HTTPProtocol", "WireBytes", "Digests",
            ]),
        core(
            "BridgeCore",
            [
                "Accounts", "BridgeTypes", "Identities", "IRCServer", "Media", "Rooms", "Upstream", "ChatModel",
                "Dialects", "Digests", "HTTPProtocol", "IRCProtocol", "JSONText", "WireBytes",
            ]),

        // Rooms in the tools that a team already has: values to requests, requests to values. No IRC server, no dialect.
        rare(
            "Mirrors",
            ["BridgeTypes", "ChatModel", "Digests", "HTTPProtocol", "IRCProtocol", "JSONText", "WireBytes"]),

        // People with a terminal: keys and screens to the lines of an IRC client and back. No IRC server.
        rare("PlainServer", ["BridgeTypes", "ChatModel", "IRCProtocol", "WireBytes"]),

        // What touches the machine.
        core("Threads", ["CSystem"]),
        core("Transport", ["CSystem", "CTLS", "Threads", "WireBytes"]),
        core("Store", ["ChatModel", "CSQLite", "CSystem", "JSONText", "Threads", "WireBytes"]),
        // What an operator writes; the mapping to what the core is told stands in the program.
        rare(
            "Configuration",
            [
                "BridgeTypes", "CSystem", "CTOML", "DescribedDialects", "Dialects", "Digests", "HTTPProtocol",
                "IRCProtocol",
                "JSONText",
                "Transport", "WireBytes",
            ]),
        .target(
            name: "Studio",
            dependencies: [
                "ChatModel", "CSQLite", "Dialects", "Digests", "JSONText", "WSProtocol", "HTTPProtocol", "Transport",
                "WireBytes",
            ],
            // The page for browsers, as it is: a document that its authors and tools see as one.
            resources: [.embedInCode("Page/studio.html")],
            swiftSettings: small),
        .executableTarget(
            name: "ChatBridge",
            dependencies: [
                "Accounts", "BridgeCore", "BridgeTypes", "IRCServer", "Identities", "Media", "Mirrors", "PlainServer",
                "Rooms",
                "Upstream",
                "Configuration",
                "Store",
                "Studio", "Threads",
                "Transport", "CSystem", "ChatModel", "DescribedDialects", "Dialects", "IRCProtocol", "Learning",
                "WSProtocol",
                "HTTPProtocol",
                "JSONText", "WireBytes",
                "Digests",
            ],
            swiftSettings: strict),

        .target(
            name: "BridgeTestSupport",
            dependencies: [
                "WireBytes", "Accounts", "BridgeCore", "BridgeTypes", "IRCServer", "Identities", "Media", "Rooms",
                "Upstream",
                "ChatModel",
                "Configuration",
                "DescribedDialects", "Dialects", "Digests",
                "IRCProtocol", "JSONText", "WSProtocol", "HTTPProtocol",
            ],
            path: "Tests/BridgeTestSupport", swiftSettings: strict),
        tests("WireBytesTests", ["WireBytes", "Digests", "JSONText"]),
        tests("IRCProtocolTests", ["IRCProtocol", "WireBytes"]),
        tests("HTTPProtocolTests", ["HTTPProtocol", "WireBytes"]),
        tests("WSProtocolTests", ["WSProtocol", "HTTPProtocol", "WireBytes"]),
        tests(
            "DialectTests", ["DescribedDialects", "Dialects", "ChatModel", "JSONText", "Learning", "WireBytes"],
            resources: [.copy("Fixtures")]),
        tests(
            "ConfigurationTests",
            [
                "BridgeTypes", "Configuration", "DescribedDialects", "Dialects", "Transport", "ChatModel", "JSONText",
                "WireBytes",
            ]),
        tests("BridgeTypesTests", ["BridgeTypes", "ChatModel", "WireBytes"]),
        tests("IdentitiesTests", ["Identities", "BridgeTypes", "ChatModel", "Digests", "IRCProtocol", "WireBytes"]),
        tests("UpstreamTests", ["Upstream", "BridgeTypes", "ChatModel", "Dialects", "HTTPProtocol", "WireBytes"]),
        tests(
            "RoomsTests",
            [
                "Rooms", "BridgeTypes", "Identities", "Upstream", "ChatModel", "Dialects", "IRCProtocol", "JSONText",
                "WireBytes",
            ]),
        tests(
            "MirrorsTests",
            [
                "Mirrors", "BridgeTypes", "ChatModel", "Digests", "HTTPProtocol", "IRCProtocol", "JSONText",
                "WireBytes",
            ]),
        tests("PlainServerTests", ["PlainServer", "BridgeTypes", "ChatModel", "IRCProtocol", "WireBytes"]),
        tests("MediaTests", ["Media", "ChatModel", "Dialects", "HTTPProtocol"]),
        tests("AccountsTests", ["Accounts", "BridgeTypes", "ChatModel", "Digests", "Upstream", "WireBytes"]),
        tests("TransportTests", ["Transport", "WireBytes"]),
        tests("StoreTests", ["Store", "ChatModel", "CSQLite"], resources: [.copy("Dumps")]),
        tests(
            "BridgeTests",
            [
                "Accounts", "BridgeCore", "BridgeTypes", "IRCServer", "Identities", "Learning", "Media", "Rooms",
                "PlainServer", "Upstream", "ChatBridge",
                "Configuration",
                "DescribedDialects", "Store", "Studio", "Threads", "Transport", "ChatModel",
                "Dialects", "IRCProtocol", "WSProtocol", "HTTPProtocol", "JSONText", "WireBytes", "Digests",
            ],
            resources: [.copy("Transcripts")]),
    ],
    swiftLanguageModes: [.v6],
    cxxLanguageStandard: .cxx17
)
