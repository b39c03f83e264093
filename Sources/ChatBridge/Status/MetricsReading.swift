import BridgeCore
import BridgeTypes
import ChatModel
import IRCServer
import Rooms
import Transport

/// Everything that the metrics are read from, at one moment.
struct MetricsReading {
    /// Without clients.
    var status: BridgeStatus
    var readiness: Readiness
    var clients: ClientTraffic
    var driver: DriverTraffic
    var latencyDown: Histogram
    var latencyUp: Histogram
    var storage: StoreMeasurements?
    var certificates: [CertificateEnd]
    var mirrors: [MirrorStatus]
    var reload: ConfigurationReload.Standing
    var process: ProcessUsage

    init(
        _ driver: BridgeDriver, store: StoreDriver?, reload: ConfigurationReload.Standing, _ transport: Transport
    ) {
        let bridge = driver.bridge
        status = bridge.status(now: Now(transport), hasClients: false)
        readiness = Readiness(bridge, store)
        clients = bridge.clientTraffic
        driver.observeSendQueues(transport)
        self.driver = driver.traffic
        (latencyDown, latencyUp) = (bridge.latency.down, bridge.latency.up)
        storage = store?.measurements
        certificates = transport.certificateEnds
        mirrors = driver.mirrorStatus
        self.reload = reload
        process = .now()
    }
}
