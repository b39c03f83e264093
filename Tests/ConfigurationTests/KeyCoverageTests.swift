import BridgeTestSupport
import Testing

/// Every key has a test that sets it to something else than its default and sees what that changes.
///
/// A row is the key, and the file and function that sets it. Most are rows of `KeyEffectTests`, which plays clients and a backend
/// with a bridge as the configuration makes it. That a value is read, printed or handed on is no effect: something must be
/// seen by a client, a backend or an operator, or in a file. Rooms, backends and `room_defaults` share their keys, which stand
/// here as those of rooms; `KeyEffectTests`, `LinkLoopbackTests` and `connect.py` set them in the other tables too.
@Suite("Keys of the configuration and their tests")
struct KeyCoverageTests {
    struct Row: CustomTestStringConvertible, Sendable {
        var key: String
        /// Below `Tests`.
        var file: String
        var function: String

        init(_ key: String, _ file: String, _ function: String) {
            (self.key, self.file, self.function) = (key, file, function)
        }

        var testDescription: String { key }
    }

    private static let storage = "BridgeTests/StorageKeyTests.swift"
    private static let media = "EndToEnd/media.py"
    private static let connect = "EndToEnd/connect.py"
    private static let loopback = "BridgeTests/LinkLoopbackTests.swift"
    private static let https = "BridgeTests/HTTPSTests.swift"
    private static let logins = "EndToEnd/logins.py"
    private static let network = "EndToEnd/mirrors_irc.py"
    private static let settings = "EndToEnd/settings.py"

    static let rows = effects.map { Row($0, "BridgeTests/KeyEffectTests.swift", "effect") } + others

    private static let effects = [
        "accounts.admin", "accounts.name", "accounts.password", "accounts.password_credential",
        "accounts.password_file", "accounts.receipts", "accounts.relaymsg", "accounts.rooms",
        "accounts.upstream.NAME.as", "backends.NAME.options", "backends.NAME.url", "dialects.NAME.file",
        "identity.nicks.collision", "identity.nicks.invalid", "identity.nicks.max_length", "identity.nicks.suffix",
        "identity.nicks.utf8", "identity.password", "identity.password_credential", "identity.password_file",
        "identity.registration", "identity.registration_before_connect", "identity.require_login", "identity.sasl",
        "identity.webirc.from", "identity.webirc.password", "identity.webirc.password_credential",
        "identity.webirc.password_file", "limits.accepts_per_second_per_ip", "limits.backlog", "limits.history_limit",
        "limits.max_clients", "limits.max_clients_per_ip", "limits.members_per_room", "limits.messages_burst",
        "limits.messages_per_second", "limits.multiline.max_bytes", "limits.multiline.max_lines",
        "limits.ping_interval", "limits.ping_timeout", "limits.recvq", "limits.registration_timeout",
        "limits.template_rooms", "limits.upstream_connects_per_second", "limits.upstream_messages_per_second",
        "rooms.auth.reauth_on", "rooms.backend", "rooms.backoff.factor", "rooms.backoff.jitter", "rooms.backoff.max",
        "rooms.backoff.min", "rooms.backoff.reset_after", "rooms.channel", "rooms.compression", "rooms.connect",
        "rooms.dialect", "rooms.give_up_after", "rooms.handshake_timeout", "rooms.headers", "rooms.history_on_join",
        "rooms.identity", "rooms.max_frame", "rooms.max_message", "rooms.member_idle", "rooms.mode", "rooms.name",
        "rooms.options", "rooms.ping", "rooms.pong_timeout", "rooms.queue.max_age", "rooms.queue.max_messages",
        "rooms.queue.when_full", "rooms.receipts", "rooms.relay_nick", "rooms.require_subprotocol", "rooms.required",
        "rooms.subprotocol", "rooms.topic", "rooms.upstream_room", "rooms.url", "rooms.user_agent",
        "server.casemapping", "server.description", "server.icon", "server.motd", "server.motd_file", "server.name",
        "server.network",
    ]

    private static let others = [
        Row("server.state_dir", "BridgeTests/StoreDriverTests.swift", "service"),
        Row("http.room_labels", "BridgeTests/StatusRoutesTests.swift", "guarded"),
        Row("http.token", "BridgeTests/StatusRoutesTests.swift", "guarded"),
        Row("http.hosts", settings, "a_page_is_served_under_the_names_of_its_listener"),
        Row("http.token_file", settings, "a_page_with_a_token_in_a_file"),
        Row("http.token_credential", settings, "a_page_with_a_token_in_a_file"),
        Row("admin.socket", settings, "the_admin_socket_is_where_it_is_said_to_be"),
        Row("admin.mode", settings, "the_admin_socket_is_where_it_is_said_to_be"),
        Row("server.instance_id", settings, "the_instance_has_its_name"),
        Row("listeners.mode", settings, "a_socket_file_has_its_mode_and_its_group"),
        Row("listeners.group", settings, "a_socket_file_has_its_mode_and_its_group"),
        Row("backends.NAME.password_credential", settings, "a_log_in_with_a_credential"),
        Row("rooms.auth.password_credential", settings, "a_log_in_in_words_with_a_credential"),
        Row("rooms.auth.refresh_before", settings, "a_log_in_in_words_with_a_credential"),
        Row("media.link_lifetime", settings, "links_to_files_end"),
        Row("media.retention", settings, "kept_files_end"),
        Row("log.levels", settings, "the_log_is_as_quiet_as_is_said"),
        Row("log.to", settings, "the_log_is_as_quiet_as_is_said"),
        Row("server.prestop_delay", "EndToEnd/stopping.py", "the_order_of_the_end"),
        Row("server.drain", "EndToEnd/lifecycle.py", "sigterm_does_not_wait_for_a_backend_that_is_gone"),
        Row("listeners.bind", "EndToEnd/listeners.py", "a_browser_client_talks_both_ways"),
        Row("listeners.cert", "EndToEnd/listeners.py", "websocket_over_tls"),
        Row("listeners.key", "EndToEnd/listeners.py", "websocket_over_tls"),
        Row("listeners.min_tls", "EndToEnd/listeners.py", "the_oldest_tls_that_is_taken"),
        Row("listeners.client_ca", "EndToEnd/listeners.py", "whose_certificates_are_taken"),
        Row("listeners.origins", "EndToEnd/listeners.py", "pages_of_strangers_are_turned_away"),
        Row("listeners.hosts", "EndToEnd/listeners.py", "pages_of_strangers_are_turned_away"),
        Row("listeners.web_root", "EndToEnd/listeners.py", "a_folder_is_served_beside_the_websocket"),
        Row("listeners.plain", "EndToEnd/plain.py", "a_listener_can_be_without_it"),
        Row("listeners.proxy_protocol", "EndToEnd/proxies.py", "no_header_no_entry"),
        Row("listeners.trusted_proxies", "EndToEnd/proxies.py", "a_web_server_says_for_whom_it_asks"),
        Row("listeners.sts", "EndToEnd/listeners.py", "plain_listeners_lead_to_tls_and_tls_says_for_how_long"),
        Row("listeners.sts_port", "EndToEnd/listeners.py", "the_port_of_tls_elsewhere"),
        Row("backends.NAME.http_base", settings, "a_backend_is_asked_where_and_as_whom_it_is_set"),
        Row("backends.NAME.user", settings, "a_backend_is_asked_where_and_as_whom_it_is_set"),
        Row("backends.NAME.password", settings, "a_backend_is_asked_where_and_as_whom_it_is_set"),
        Row("backends.NAME.password_file", settings, "a_backend_is_asked_where_and_as_whom_it_is_set"),
        Row("rooms.auth.type", logins, "a_token_in_a_header"),
        Row("rooms.auth.token", loopback, "credentials"),
        Row("rooms.auth.token_file", loopback, "credentials"),
        Row("rooms.auth.token_credential", loopback, "credentials"),
        Row("rooms.auth.param", loopback, "credentials"),
        Row("rooms.auth.name", loopback, "credentials"),
        Row("rooms.auth.format", loopback, "credentials"),
        Row("rooms.auth.user", loopback, "credentials"),
        Row("rooms.auth.password", loopback, "credentials"),
        Row("rooms.auth.password_file", loopback, "credentials"),
        Row("rooms.auth.login_url", logins, "a_login_described_in_the_configuration"),
        Row("rooms.auth.login_body", logins, "a_login_described_in_the_configuration"),
        Row("rooms.auth.refresh_url", logins, "a_login_described_in_the_configuration"),
        Row("rooms.auth.refresh_body", logins, "a_login_described_in_the_configuration"),
        Row("rooms.auth.access_token_at", logins, "a_login_described_in_the_configuration"),
        Row("rooms.auth.refresh_token_at", logins, "a_login_described_in_the_configuration"),
        Row("rooms.auth.expires_in_at", logins, "a_login_described_in_the_configuration"),
        Row("rooms.auth.expires_in_unit", "EndToEnd/tokens.py", "the_unit_puts_it_right"),
        Row("rooms.auth.send_as.in", logins, "a_login_described_in_the_configuration"),
        Row("rooms.auth.send_as.name", logins, "a_login_described_in_the_configuration"),
        Row("rooms.auth.send_as.format", logins, "a_login_described_in_the_configuration"),
        Row("rooms.proxy", loopback, "throughProxy"),
        Row("rooms.tls.ca", logins, "over_tls"),
        Row("rooms.tls.client_cert", connect, "each_key_of_tls"),
        Row("rooms.tls.client_key", connect, "each_key_of_tls"),
        Row("rooms.tls.server_name", connect, "each_key_of_tls"),
        Row("rooms.tls.pin_sha256", connect, "each_key_of_tls"),
        Row("rooms.tls.min_version", connect, "each_key_of_tls"),
        Row("rooms.tls.insecure", connect, "each_key_of_tls"),
        Row("rooms.connect_timeout", "EndToEnd/outages.py", "a_backend_that_does_not_come_to_a_connection"),
        Row("identity.rejoin", "EndToEnd/rejoin.py", "who_does_not_want_it_is_in_no_room"),
        Row("identity.bearer", "EndToEnd/bearer.py", "a_token_of_the_backend_logs_in"),
        Row("accounts.certfp", "EndToEnd/accounts_sasl.py", "a_certificate_logs_in_whoever_has_its_key"),
        Row("accounts.bearer", "EndToEnd/passwordless.py", "a_token_logs_in_where_there_is_no_password"),
        Row("accounts.upstream.NAME", "EndToEnd/files.py", "who_has_a_login_of_their_own_uploads_with_it"),
        Row("storage.url", storage, "place"),
        Row("storage.retention", storage, "retention"),
        Row("storage.max_messages_per_room", storage, "maxMessages"),
        Row("storage.sync", settings, "the_disk_is_awaited_as_often_as_is_set"),
        Row("storage.batch.max_messages", storage, "batches"),
        Row("storage.batch.max_wait", storage, "waiting"),
        Row("limits.sendq", settings, "the_queue_of_a_client_has_the_size_that_is_set"),
        Row("mirrors.name", "EndToEnd/mirrors_operating.py", "states_in_status_metrics_and_page"),
        Row("mirrors.type", "EndToEnd/mirrors_out.py", "names_and_pictures_by_their_templates"),
        Row("mirrors.rooms", "EndToEnd/mirrors_out.py", "two_rooms_in_one_mirror_and_no_other_room"),
        Row("mirrors.channel_keys", "EndToEnd/mirrors_irc.py", "a_channel_with_a_key"),
        Row("mirrors.to", "EndToEnd/mirrors_rooms.py", "messages_cross_both_ways"),
        Row("mirrors.direction", "EndToEnd/mirrors_rooms.py", "one_way_in"),
        Row("mirrors.url", "EndToEnd/mirrors_out.py", "plain_text_stays_whole"),
        Row("mirrors.url_file", "EndToEnd/mirrors_operating.py", "secrets_from_files"),
        Row("mirrors.url_credential", "EndToEnd/mirrors_operating.py", "secrets_from_credentials"),
        Row("mirrors.path", "EndToEnd/mirrors_in.py", "a_person_there_speaks_in_the_room"),
        Row("mirrors.secret", "EndToEnd/mirrors_hooks.py", "a_wrong_secret"),
        Row("mirrors.secret_file", "EndToEnd/mirrors_operating.py", "secrets_from_files"),
        Row("mirrors.secret_credential", "EndToEnd/mirrors_operating.py", "secrets_from_credentials"),
        Row("mirrors.events", "EndToEnd/mirrors_operating.py", "topics_that_are_asked_for"),
        Row("mirrors.username", "EndToEnd/mirrors_out.py", "names_and_pictures_by_their_templates"),
        Row("mirrors.avatar_url", "EndToEnd/mirrors_out.py", "names_and_pictures_by_their_templates"),
        Row("mirrors.nick", "EndToEnd/mirrors_in.py", "nicks_by_their_template"),
        Row("mirrors.mentions", "EndToEnd/mirrors_out.py", "mentions_that_are_allowed"),
        Row("mirrors.ignore.nicks", "EndToEnd/mirrors_in.py", "ignored_people_and_texts"),
        Row("mirrors.ignore.matching", "EndToEnd/mirrors_in.py", "ignored_people_and_texts"),
        Row("mirrors.retry.max_age", "EndToEnd/mirrors_faults.py", "messages_older_than_the_bound_are_given_up_aloud"),
        Row("mirrors.batch.max_messages", "EndToEnd/mirrors_out.py", "a_first_message_waits_for_others"),
        Row("mirrors.batch.max_wait", "EndToEnd/mirrors_out.py", "a_first_message_waits_for_others"),
        Row("mirrors.map", network, "messages_cross_both_ways"),
        Row("mirrors.server_password", network, "a_server_password"),
        Row("mirrors.server_password_file", network, "a_server_password"),
        Row("mirrors.server_password_credential", network, "a_server_password"),
        Row("mirrors.sasl.mechanism", network, "over_tls"),
        Row("mirrors.sasl.user", network, "a_relay_as_the_network"),
        Row("mirrors.sasl.password", network, "a_relay_as_the_network"),
        Row("mirrors.sasl.password_file", network, "a_relay_as_the_network"),
        Row("mirrors.sasl.password_credential", network, "a_relay_as_the_network"),
        Row("mirrors.tls.ca", network, "over_tls"),
        Row("mirrors.tls.client_cert", network, "over_tls"),
        Row("mirrors.tls.client_key", network, "over_tls"),
        Row("mirrors.tls.server_name", network, "over_tls"),
        Row("mirrors.tls.pin_sha256", network, "over_tls"),
        Row("mirrors.tls.min_version", network, "the_oldest_tls_of_a_network"),
        Row("mirrors.tls.insecure", network, "over_tls"),
        Row("mirrors.format", network, "the_form_of_messages"),
        Row("mirrors.relaymsg", network, "a_relay_as_the_network"),
        Row("mirrors.messages_per_second", network, "a_pace_that_is_kept"),
        Row("http.bind", https, "secure"),
        Row("http.cert", https, "secure"),
        Row("http.key", https, "secure"),
        Row("http.min_tls", settings, "a_page_takes_the_oldest_tls_that_is_set"),
        Row("http.serve", media, "where_the_backend_takes_no_files_the_bridge_keeps_them"),
        Row("http.trusted_proxies", "EndToEnd/borrowed.py", "only_the_last_word_of_a_named_proxy_counts"),
        Row("media.public_url", media, "where_the_backend_takes_no_files_the_bridge_keeps_them"),
        Row("media.max_upload", media, "where_the_backend_takes_no_files_the_bridge_keeps_them"),
        Row("media.max_bytes", settings, "kept_files_have_so_much_room"),
        Row("log.format", settings, "the_log_has_the_form_that_is_set"),
        Row("log.level", settings, "the_log_is_as_quiet_as_is_said"),
        Row("log.messages", settings, "the_log_has_what_is_said_only_if_it_is_asked_to"),
    ]

    /// The keys of the schema, each section's shared ones once.
    static let keys: Set<String> = Set(
        DocumentedKeysTests.schema.map { path in
            for section in ["room_defaults.", "backends.NAME."] where path.hasPrefix(section) {
                let shared = "rooms." + path.dropFirst(section.count)
                // The password and the address of a backend are not those of rooms.
                if DocumentedKeysTests.schema.contains("room_defaults." + path.dropFirst(section.count)) {
                    return shared
                }
            }
            return path.hasPrefix("accounts.upstream.NAME.") && !path.hasSuffix(".as") ? "accounts.upstream.NAME" : path
        })

    @Test("every key has a test, once, and no test is for a key that does not exist")
    func complete() {
        let named = Self.rows.map(\.key)
        #expect(Self.keys.subtracting(named).sorted() == [], "no test for these")
        #expect(Set(named).subtracting(Self.keys).sorted() == [], "no such keys")
        #expect(
            named.count == Set(named).count, "named twice: \(named.filter { name in named.count { $0 == name } > 1 })")
    }

    @Test("the test of a key exists, and its file sets the key", arguments: rows)
    func exists(_ row: Row) throws {
        let text = try RepositoryFile.text("Tests/" + row.file)
        let keyword = row.file.hasSuffix(".py") ? "def" : "func"
        #expect(text.contains("\(keyword) \(row.function)("), "there is no \(row.function)")
        let word = row.key.split(separator: ".").last { $0 != "NAME" } ?? ""
        #expect(text.contains(word), "it does not name the key")
    }
}
