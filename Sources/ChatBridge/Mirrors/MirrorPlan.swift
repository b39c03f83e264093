import BridgeTypes
import ChatModel
import Configuration
import HTTPProtocol
import IRCProtocol
import Mirrors
import Transport
import WireBytes

/// A mirror of the configuration, its secrets read.
struct MirrorPlan: Equatable, Sendable {
    let configuration: MirrorConfiguration
    /// Nil: nothing goes out to a tool.
    let url: HTTPURL?
    let secret: MirrorSecret?
    let place: OriginChain.Place
    let proxies: HTTPProxyRules
    let filter: MirrorFilter
    /// Nil: it is no mirror of an IRC network.
    let network: NetworkPlan?

    init(
        _ configuration: MirrorConfiguration, installation: String, environment: ConfigurationEnvironment
    ) throws(StartError) {
        self.configuration = configuration
        func read(_ source: SecretSource?) throws(StartError) -> String? {
            guard let source else { return nil }
            do throws(InterpolationError) {
                return try source.read(environment).revealed
            } catch {
                throw StartError(
                    description: "a secret of the mirror \(configuration.name) cannot be read: \(error.message)")
            }
        }
        let address = try read(configuration.url)
        url = address.flatMap { MirrorConfiguration.url($0) }
        secret = try read(configuration.secret).map { MirrorSecret(Array($0.utf8)) }
        place = OriginChain.Place(mirror: configuration.name, of: installation)
        proxies = HTTPProxyRules(environment: environment.variables)
        var filter = MirrorFilter()
        filter.events = Set(configuration.events.compactMap { MirrorFilter.Event(rawValue: $0.rawValue) })
        filter.ignoredNicks = configuration.ignore.nicks.map { IRCMask($0) }
        filter.ignoredTexts = configuration.ignore.matching.map { IRCMask($0) }
        self.filter = filter
        network = try address.flatMap(IRCNetworkAddress.init).map { place throws(StartError) in
            let serverPassword = try read(configuration.serverPassword).map { MirrorSecret(Array($0.utf8)) }
            let password = try read(configuration.sasl.password).map { MirrorSecret(Array($0.utf8)) }
            return NetworkPlan(configuration, at: place, password: password, serverPassword: serverPassword)
        }
    }

    /// Proxies are of the process.
    static func == (a: Self, b: Self) -> Bool {
        a.configuration == b.configuration && a.url == b.url && a.secret == b.secret && a.place == b.place
            && a.network == b.network
    }

    /// Messages that another room takes in one transaction.
    private static let roomBatch = 100

    var name: String { configuration.name }

    /// The room that a channel of the IRC network comes into.
    func room(of channel: String) -> String? {
        configuration.comesIn ? configuration.channels.first { $0.channel == channel }?.room : nil
    }

    func channel(of room: String) -> String? { configuration.channels.first { $0.room == room }?.channel }

    /// Nil: another room, or an IRC network.
    var form: (any MirrorForm)? { configuration.kind.flatMap { MirrorTool(rawValue: $0.rawValue) }?.form }

    var wording: MirrorWording {
        var wording = MirrorWording()
        wording.username = configuration.username
        wording.avatarURL = configuration.avatarURL
        wording.defusesMentions = configuration.mentions == .escape
        return wording
    }

    var queue: MirrorQueue.Settings {
        var settings = MirrorQueue.Settings(name: name)
        settings.maxAge = configuration.retry.maxAge
        settings.maxPosts =
            configuration.kind == .room
            ? Self.roomBatch : min(configuration.maxBatchMessages, form?.traits.postsAtOnce ?? 1)
        settings.maxWait = configuration.batch.maxWait
        return settings
    }

    /// The rooms that are read, each list with where they go. A room of an IRC network has a leg for itself, so that a
    /// channel that is not joined holds up no other.
    var legs: [(rooms: [String], to: MirrorLeg.Target)] {
        switch configuration.kind {
        case .room:
            configuration.rooms.flatMap { room in
                (configuration.goesOut ? [([room], .room(configuration.to))] : [])
                    + (configuration.comesIn ? [([configuration.to], .room(room))] : [])
            }
        case .irc: configuration.goesOut ? configuration.channels.map { ([$0.room], .channel($0.channel)) } : []
        default: url == nil ? [] : [(configuration.rooms, .tool)]
        }
    }
}

/// The IRC network of a mirror.
struct NetworkPlan: Equatable, Sendable {
    let address: IRCNetworkAddress
    let settings: IRCNetworkSettings
    /// Nil: not secured.
    let tls: TLSClientSettings?

    init(
        _ configuration: MirrorConfiguration, at address: IRCNetworkAddress, password: MirrorSecret?,
        serverPassword: MirrorSecret?
    ) {
        self.address = address
        var settings = IRCNetworkSettings(
            nick: configuration.networkNick,
            channels: configuration.channels.map { channel in
                let key = configuration.channelKeys.first { $0.room == channel.room }?.key.revealed
                return .init(channel.channel, key: key.map { MirrorSecret(Array($0.utf8)) })
            })
        settings.serverPassword = serverPassword
        settings.format = configuration.format
        settings.usesRelaymsg = configuration.usesRelaymsg
        settings.setsTopic = configuration.events.contains(.topic)
        settings.linesPerSecond = configuration.messagesPerSecond
        settings.version = "chatbridge \(BuildInformation.version)"
        let login = configuration.sasl
        switch (login.mechanism, password) {
        case (.plain, let password?): settings.login = .plain(user: login.user, password: password)
        case (.scramSHA256, let password?): settings.login = .scramSHA256(user: login.user, password: password)
        case (.external, _): settings.login = .external
        case (.plain, nil), (.scramSHA256, nil): break
        }
        self.settings = settings
        tls = address.isSecure ? configuration.tls.settings(protocols: []) : nil
    }
}
